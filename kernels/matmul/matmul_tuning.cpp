// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul_algorithm.hpp"
#include "runtime/scratch.hpp"

#include <fourfold/base/contract.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

namespace fourfold::kernels {

namespace {

struct Book {
  std::mutex mutex;
  bool measures = false;
  std::map<std::string, MatmulTuning> choices;
};

Book& book() {
  static Book the_book;
  return the_book;
}

const char* name(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      break;
    case Epilogue::gelu:
      return "gelu";
    case Epilogue::gelu_backward:
      return "gelu_backward";
    case Epilogue::row_sums:
      return "row_sums";
  }
  return "plain";
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

std::uint32_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  std::uint32_t bytes = 256;
  while (address % bytes != 0) {
    bytes /= 2;
  }
  return bytes;
}

GemmKind kind_of(DType dtype, const Gemm& p) {
  return {.dtype = dtype,
          .c_dtype = p.c_dtype,
          .m = p.m,
          .n = p.n,
          .k = p.k,
          .a_transposed = p.a_transposed,
          .b_transposed = p.b_transposed,
          .a_row = p.a_row,
          .c_row = p.c_row,
          .write = p.write,
          .epilogue = p.epilogue,
          .has_bias = p.bias_N != nullptr,
          .a_alignment = alignment_of(p.a),
          .b_alignment = alignment_of(p.b),
          .c_alignment = alignment_of(p.c),
          .bias_alignment = alignment_of(p.bias_N),
          .aux_alignment = alignment_of(p.aux_MN)};
}

std::string GemmKind::str() const {
  // All of it by name: a field that is added does not compile before it is said here too.
  const auto& [of_dtype, of_c, rows, columns, depth, a_is_T, b_is_T, row_a, row_c, writes, after,
               bias, of_a, of_b, of_c_memory, of_bias, of_aux] = *this;
  return fmt::format("{}>{} {}x{}x{} {}{} rows {} {} {} {}{} aligned {} {} {} {} {}",
                     fourfold::name(of_dtype), fourfold::name(of_c), rows, columns, depth,
                     a_is_T ? 'T' : 'N', b_is_T ? 'T' : 'N', row_a, row_c,
                     writes == Write::accumulate ? "accumulate" : "replace", name(after),
                     bias ? "+bias" : "", of_a, of_b, of_c_memory, of_bias, of_aux);
}

AlgorithmTimes fastest_algorithm(const std::vector<std::vector<double>>& us) {
  FOURFOLD_EXPECT(!us.empty());
  AlgorithmTimes result;
  for (const std::vector<double>& rounds : us) {
    result.median_us.push_back(rounds.empty() ? std::numeric_limits<double>::infinity()
                                              : median(rounds));
  }
  const auto least = std::ranges::min_element(result.median_us);
  if (*least < 0.99 * result.median_us.front()) {
    result.best = least - result.median_us.begin();
  }
  return result;
}

bool measures_products() {
  const std::scoped_lock lock(book().mutex);
  return book().measures;
}

std::optional<std::string> known_algorithm(const std::string& product) {
  const std::scoped_lock lock(book().mutex);
  const auto found = book().choices.find(product);
  return found == book().choices.end() ? std::nullopt : std::optional(found->second.way);
}

void note_choice(const MatmulTuning& choice) {
  const std::scoped_lock lock(book().mutex);
  book().choices[choice.product] = choice;
}

void choose_products(const std::vector<MatmulTuning>& known, bool measure) {
  {
    const std::scoped_lock lock(book().mutex);
    book().measures = measure;
    book().choices.clear();
    for (const MatmulTuning& choice : known) {
      book().choices[choice.product] = choice;
    }
  }
  forget_algorithms();
  outdate_recorded_work();
}

std::vector<MatmulTuning> chosen_products() {
  finish_timing();
  const std::scoped_lock lock(book().mutex);
  std::vector<MatmulTuning> result;
  for (const auto& [product, choice] : book().choices) {
    result.push_back(choice);
  }
  return result;
}

TimingRounds::TimingRounds(device::StreamRef stream) : stream_(stream) {
  mark();
}

void TimingRounds::mark() {
  events_.emplace_back().record(stream_);
}

bool TimingRounds::is_done() const {
  return events_.back().has_happened();
}

void TimingRounds::wait() const {
  events_.back().synchronize();
}

std::vector<std::vector<double>> TimingRounds::us(std::size_t ways) const {
  FOURFOLD_EXPECT(events_.size() == 1 + rounds * ways);
  std::vector<std::vector<double>> result(ways);
  for (std::size_t i = ways; i < rounds * ways; ++i) {
    result[i % ways].push_back(events_[i + 1].us_since(events_[i]));
  }
  return result;
}

}  // namespace fourfold::kernels
