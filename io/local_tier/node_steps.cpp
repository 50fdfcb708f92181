// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "local_tier/local_tier_impl.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/retention.hpp>
#include <fourfold/io/step_place.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {
namespace {

using Problems = std::vector<std::string>;

void warn_of(std::string_view what, const std::function<Problems()>& removal) {
  Problems problems;
  if (const auto failure = comm::capture_failure([&] { problems = removal(); })) {
    problems.push_back(failure->message);
  }
  for (const std::string& problem : problems) {
    log::local(log::Level::warning, format_message("{} cannot be removed: {}", what, problem));
  }
}

}  // namespace

void remove_local_steps(const std::filesystem::path& home, std::span<const std::int64_t> steps) {
  warn_of("a node-local step", [&] { return remove_steps(home, steps); });
}

void remove_outdated_local_steps(const std::filesystem::path& home, std::int64_t step,
                                 int keep_last) {
  warn_of("a node-local step", [&] {
    std::vector<std::int64_t> steps = list_steps(home);
    std::erase_if(steps, [&](std::int64_t other) { return other > step; });
    steps.resize(steps.size() - std::min<std::size_t>(steps.size(), keep_last));
    return remove_steps(home, steps);
  });
}

void sweep_local_steps(const std::filesystem::path& home) {
  warn_of("what a node-local save that failed has left", [&] { return remove_leftovers(home); });
}

void remove_all_local_steps(const std::filesystem::path& home) {
  warn_of("a folder of old node-local steps", [&] {
    const Defect defect = remove_tree(home);
    return defect ? Problems{*defect} : Problems{};
  });
}

}  // namespace fourfold::io
