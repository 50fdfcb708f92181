// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul_algorithm.hpp"
#include "runtime/scratch.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/timed_event.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>

namespace fourfold::kernels {

namespace {

// What is known of choices, of all threads.
std::mutex mutex;
bool measures = false;
std::map<std::string, MatmulTuning> choices;

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
  const std::scoped_lock lock(mutex);
  return measures;
}

std::optional<std::string> known_algorithm(const std::string& product) {
  const std::scoped_lock lock(mutex);
  const auto found = choices.find(product);
  return found == choices.end() ? std::nullopt : std::optional(found->second.way);
}

void note_choice(const MatmulTuning& choice) {
  const std::scoped_lock lock(mutex);
  choices[choice.product] = choice;
}

void set_matmul_tuning(const std::vector<MatmulTuning>& known, bool measure) {
  {
    const std::scoped_lock lock(mutex);
    measures = measure;
    choices.clear();
    for (const MatmulTuning& choice : known) {
      choices[choice.product] = choice;
    }
  }
  forget_algorithms();
  outdate_recorded_work();
}

std::vector<MatmulTuning> known_matmul_tuning() {
  const std::scoped_lock lock(mutex);
  std::vector<MatmulTuning> result;
  for (const auto& [product, choice] : choices) {
    result.push_back(choice);
  }
  return result;
}

std::vector<std::vector<double>> time_ways(std::size_t ways, device::StreamRef stream,
                                           const std::function<bool(std::size_t)>& enqueue) {
  std::vector<device::TimedEvent> events(1 + timing_rounds * ways);
  std::vector<bool> refused(ways);
  events.front().record(stream);
  for (std::size_t i = 0; i < timing_rounds * ways; ++i) {
    refused[i % ways] = refused[i % ways] || !enqueue(i % ways);
    events[i + 1].record(stream);
  }
  events.back().synchronize();
  std::vector<std::vector<double>> us(ways);
  for (std::size_t i = ways; i < timing_rounds * ways; ++i) {
    if (!refused[i % ways]) {
      us[i % ways].push_back(events[i + 1].us_since(events[i]));
    }
  }
  return us;
}

}  // namespace fourfold::kernels
