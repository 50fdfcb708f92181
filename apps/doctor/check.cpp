// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

namespace fourfold::doctor {

namespace {

/// Digits as numbers.
bool comes_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (!a.empty() && !b.empty()) {
    if (is_digit(a.front()) && is_digit(b.front())) {
      const auto digits = [&](std::string_view text) {
        return std::ranges::find_if_not(text, is_digit) - text.begin();
      };
      const auto significant = [](std::string_view number) {
        number.remove_prefix(std::min(number.find_first_not_of('0'), number.size()));
        return number;
      };
      const std::string_view left = significant(a.substr(0, digits(a)));
      const std::string_view right = significant(b.substr(0, digits(b)));
      if (left != right) {
        return std::pair(left.size(), left) < std::pair(right.size(), right);
      }
      a.remove_prefix(digits(a));
      b.remove_prefix(digits(b));
    } else if (a.front() != b.front()) {
      return a.front() < b.front();
    } else {
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

std::string without_domain(const std::string& host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

}  // namespace

std::string_view name(Status status) noexcept {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::warning:
      return "warning";
    case Status::fail:
      return "FAIL";
  }
  return "";
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
  std::ranges::stable_sort(nodes, comes_before);
  return nodes;
}

ExitCode verdict(std::span<const Check> checks) {
  if (std::ranges::any_of(checks, &Check::fails_anyway)) {
    return ExitCode::config;
  }
  return exclude_list(checks).empty() ? ExitCode::finished : ExitCode::node_fault;
}

std::vector<std::string> node_names(std::span<const std::string> hosts,
                                    std::span<const std::string> slurm) {
  std::map<std::string, std::string> node_of_host;
  std::map<std::string, std::string> host_of_node;
  bool fits = hosts.size() == slurm.size();
  for (std::size_t rank = 0; fits && rank < hosts.size(); ++rank) {
    fits = !slurm[rank].empty() &&
           node_of_host.try_emplace(hosts[rank], slurm[rank]).first->second == slurm[rank] &&
           host_of_node.try_emplace(slurm[rank], hosts[rank]).first->second == hosts[rank];
  }
  std::vector<std::string> nodes;
  nodes.reserve(hosts.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    nodes.push_back(fits ? slurm[rank] : without_domain(hosts[rank]));
  }
  return nodes;
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
