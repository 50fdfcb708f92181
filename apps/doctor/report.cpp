// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "examination.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fourfold::doctor {

std::vector<DirectoryFacts> Examination::facts_of_directory(std::size_t index) const {
  return each(nodes, [&](const NodeFacts& node) { return node.directories[index]; });
}

std::string report(const Examination& examination) {
  std::size_t width = 0;
  for (const Check& check : examination.checks) {
    width = std::max(width, check.name().size());
  }
  std::string text;
  for (const Check& check : examination.checks) {
    text += fmt::format("{:<{}}  {:<7}  {}\n", check.name(), width, name(check.status()),
                        printable(check.summary()));
    for (const std::string& finding : check.findings()) {
      text += fmt::format("{:<{}}  {}\n", "", width, printable(finding));
    }
  }
  const auto count = [&](Status status) {
    return std::ranges::count(examination.checks, status, &Check::status);
  };
  text += fmt::format("\n{} checks in {:.1f} s: {} ok, {}, {} failed; exit code {}\n",
                      examination.checks.size(), examination.seconds, count(Status::ok),
                      counted(count(Status::warning), "warning"), count(Status::fail),
                      static_cast<int>(verdict(examination.checks)));
  const std::vector<std::string> exclude = exclude_list(examination.checks);
  return text + (exclude.empty()
                     ? std::string("exclude:\n")
                     : format_message("exclude: --exclude={}\n", fmt::join(exclude, ",")));
}

}  // namespace fourfold::doctor
