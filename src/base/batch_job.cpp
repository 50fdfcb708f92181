// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/batch_job.hpp>

#include <algorithm>
#include <cstdlib>

namespace fourfold {
namespace {

std::string word_in(const char* name) {
  const char* const text = std::getenv(name);
  const std::string word = text == nullptr ? "" : text;
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
