// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fourfold/base/enum_name.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

namespace fourfold::doctor {

std::string_view name(Status status) noexcept {
  constexpr std::array<std::string_view, 3> names{"ok", "warning", "FAIL"};
  return name_in(names, status);
}

void Check::warn(std::string finding) {
  status_ = std::max(status_, Status::warning);
  findings_.push_back(std::move(finding));
}

void Check::fail(std::string finding) {
  status_ = Status::fail;
  fails_anyway_ = true;
  findings_.push_back(std::move(finding));
}

void Check::fail_nodes(std::vector<std::string> nodes, std::string finding) {
  status_ = Status::fail;
  findings_.push_back(std::move(finding));
  std::ranges::move(nodes, std::back_inserter(bad_nodes_));
}

std::vector<std::string> exclude_list(std::span<const Check> checks) {
  std::set<std::string> distinct;
  for (const Check& check : checks) {
    distinct.insert(check.bad_nodes().begin(), check.bad_nodes().end());
  }
  std::vector<std::string> nodes(distinct.begin(), distinct.end());
  std::ranges::sort(nodes, [](const std::string& a, const std::string& b) {
    return ::strverscmp(a.c_str(), b.c_str()) < 0;  // digits as numbers
  });
  return nodes;
}

ExitCode verdict(std::span<const Check> checks) {
  if (std::ranges::any_of(checks, &Check::fails_anyway)) {
    return ExitCode::config;
  }
  return exclude_list(checks).empty() ? ExitCode::finished : ExitCode::node_fault;
}

std::string first_of(std::span<const std::string> items, std::size_t most) {
  if (items.size() <= most + 1) {
    return fmt::format("{}", fmt::join(items, ", "));
  }
  return fmt::format("{} and {} more", fmt::join(items.first(most), ", "), items.size() - most);
}

std::string first_of(std::span<const int> ranks, std::size_t most) {
  return first_of(each(ranks, [](int rank) { return std::to_string(rank); }), most);
}

std::string counted(std::size_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

void add_once(std::vector<std::string>& names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) {
    names.push_back(name);
  }
}

double median(std::vector<double> values) {
  if (values.empty()) {
    return 0;
  }
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<std::size_t> slow_ones(std::span<const double> rates) {
  std::vector<std::size_t> slow;
  if (rates.size() < 2) {
    return slow;
  }
  const std::vector<double> numbers =
      each(rates, [](double rate) { return std::isfinite(rate) && rate > 0 ? rate : 0; });
  const double usual = median(numbers);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (numbers[i] <= 0 || numbers[i] < outlier_share * usual) {
      slow.push_back(i);
    }
  }
  return slow;
}

}  // namespace fourfold::doctor
