// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::doctor {

enum class Status : std::uint8_t { ok, warning, fail };
std::string_view name(Status status) noexcept;  ///< "ok", "warning", "FAIL"

/// What one check came to: a row of the table.
class Check {
 public:
  explicit Check(std::string name) : name_(std::move(name)) {}

  /// The figures, in a few words.
  void say(std::string summary) { summary_ = std::move(summary); }
  /// Worth a look; a run would do. Each: what is wrong (why) what to do.
  void warn(std::string finding);
  /// A run would fail or stall, whichever nodes it has.
  void fail(std::string finding);
  /// These nodes are bad; a run would do without them.
  void fail_nodes(std::vector<std::string> nodes, std::string finding);

  const std::string& name() const noexcept { return name_; }
  Status status() const noexcept { return status_; }
  const std::string& summary() const noexcept { return summary_; }
  const std::vector<std::string>& findings() const noexcept { return findings_; }
  const std::vector<std::string>& bad_nodes() const noexcept { return bad_nodes_; }
  /// Something is wrong that leaving nodes out does not change.
  bool fails_anyway() const noexcept { return fails_anyway_; }

 private:
  std::string name_;
  Status status_ = Status::ok;
  std::string summary_;
  std::vector<std::string> findings_;
  std::vector<std::string> bad_nodes_;
  bool fails_anyway_ = false;
};

/// All bad nodes, each once, node9 before node10: what `sbatch --exclude=` takes.
std::vector<std::string> exclude_list(std::span<const Check> checks);

/// config when a run would fail on any nodes; else node_fault when nodes are bad; else finished.
ExitCode verdict(std::span<const Check> checks);

/// "0, 3, 7 and 12 more": of a long list the first ones.
std::string first_of(std::span<const std::string> items, std::size_t most = 6);
/// The same of the numbers of ranks.
std::string first_of(std::span<const int> ranks, std::size_t most = 6);

/// "1 rank", "3 ranks".
std::string counted(std::size_t count, std::string_view thing);

/// Appends a name that is not there yet.
void add_once(std::vector<std::string>& names, const std::string& name);

/// What `of` makes of each item, in their order; `of` may be a member.
template <class Items, class Of>
auto each(const Items& items, Of of) {
  const auto made = items | std::views::transform(of);
  return std::vector(made.begin(), made.end());
}

/// The nodes of the facts for which it holds, each once.
template <class Facts, class Holds>
std::vector<std::string> nodes_where(const std::vector<Facts>& all, Holds holds) {
  std::vector<std::string> nodes;
  for (const Facts& facts : all) {
    if (std::invoke(holds, facts)) {
      add_once(nodes, facts.node);
    }
  }
  return nodes;
}

/// What is slower than this share of the median stands out.
inline constexpr double outlier_share = 0.8;

/// Of an even number of values the mean of the two in the middle; 0 of none.
double median(std::vector<double> values);

/// Indices of rates (more is better) below outlier_share of the median, ascending. A rate that is
/// no positive number stands out too, unless there is only one. Of two, the slower stands out when
/// it is below two thirds of the other; when more than half are slow nobody can tell by this that
/// they are, and nothing stands out.
std::vector<std::size_t> slow_ones(std::span<const double> rates);

}  // namespace fourfold::doctor
