// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <utility>
#include <vector>

namespace fourfold {

namespace {

RankIdentity& identity() {
  static RankIdentity instance;
  return instance;
}

}  // namespace

void set_rank_identity(RankIdentity next) {
  identity() = std::move(next);
}

const RankIdentity& rank_identity() noexcept {
  return identity();
}

std::string ranges_text(std::span<const int> numbers, std::string_view dash) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) {
      ++last;
    }
    parts.push_back(first == last ? fmt::format("{}", numbers[first])
                                  : fmt::format("{}{}{}", numbers[first], dash, numbers[last]));
    first = last + 1;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string ranks_text(std::span<const int> ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", ranges_text(ranks));
}

std::string environment_text(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::int64_t environment_number(const char* name, std::int64_t otherwise) {
  const std::string text = environment_text(name);
  if (text.empty()) {
    return otherwise;
  }
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || stop != end || value < 0) {
    log::warning(format_message("{}={} is ignored (that is no number)", name, printable(text)));
    return otherwise;
  }
  return value;
}

namespace {

std::string word_in(const char* name) {
  const std::string word = environment_text(name);
  const auto is_visible = [](char c) { return '!' <= c && c <= '~'; };
  return std::ranges::all_of(word, is_visible) ? word : "";
}

long count_in(const char* name) {
  return std::max(0L, std::strtol(word_in(name).c_str(), nullptr, 10));
}

}  // namespace

BatchJob BatchJob::of_this_process() {
  return {.id = word_in("SLURM_JOB_ID"),
          .restarts = count_in("SLURM_RESTART_COUNT"),
          .launch = count_in("FOURFOLD_LAUNCH"),
          .chain = word_in("FOURFOLD_CHAIN"),
          .previous = word_in("FOURFOLD_PREVIOUS")};
}

}  // namespace fourfold
