// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hang_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <utility>
#include <vector>

namespace fourfold::comm {
namespace {

using Kind = HangDiagnosis::Kind;

/// Calls of the same number on the same communicator that cannot be the same call.
bool differ(const ToldCall& a, const ToldCall& b) {
  if (a.group != b.group || a.sequence != b.sequence || !is_collective(a.operation) ||
      !is_collective(b.operation)) {
    return false;
  }
  const bool same_bytes =
      a.operation == Operation::all_reduce || a.operation == Operation::broadcast;
  return a.operation != b.operation || (same_bytes && a.bytes != b.bytes);
}

bool is_same(const ToldCall& a, const ToldCall& b) {
  return a.group == b.group && a.sequence == b.sequence && a.operation == b.operation &&
         a.bytes == b.bytes;
}

/// Those of `ranks`, which all block, in whose call the fewest ranks of the run block.
std::vector<int> in_rarest_call(const WorldState& world, const std::set<int>& ranks) {
  std::map<std::int64_t, std::vector<int>> by_company;
  for (const int rank : ranks) {
    const ToldCall& call = *world.waiting(rank);
    const auto company = std::ranges::count_if(world.ranks, [&](const RankState& other) {
      return other.beat && other.beat->waiting && is_same(call, *other.beat->waiting);
    });
    by_company[company].push_back(rank);
  }
  return by_company.begin()->second;
}

/// What a rank's calls on a group amounted to after so many; nothing when it has not said.
std::optional<std::uint64_t> digest_at(const WorldState& world, int rank, std::uint64_t group,
                                       std::uint64_t calls) {
  const ToldCalls* const told = world.calls_on(rank, group);
  if (told == nullptr || calls == 0) {
    return std::nullopt;
  }
  for (const CallsDigest& digest : told->digests) {
    if (digest.calls == calls) {
      return digest.digest;
    }
  }
  return std::nullopt;
}

/// Ranks of a group whose first `calls` calls were not those of most; all, where there is no most.
std::vector<int> deviating(const WorldState& world, const ToldGroup& group, std::uint64_t id,
                           std::uint64_t calls) {
  std::map<std::uint64_t, std::vector<int>> by_digest;
  for (const int rank : group.world_ranks) {
    if (const auto digest = digest_at(world, rank, id, calls)) {
      by_digest[*digest].push_back(rank);
    }
  }
  if (by_digest.size() < 2) {
    return {};
  }
  const auto size = [](const auto& same) { return same.second.size(); };
  const std::size_t most = std::ranges::max(by_digest | std::views::transform(size));
  const bool is_clear = std::ranges::count(by_digest, most, size) == 1;
  std::vector<int> others;
  for (const auto& [digest, ranks] : by_digest) {
    if (!is_clear || ranks.size() < most) {
      others.insert(others.end(), ranks.begin(), ranks.end());
    }
  }
  std::ranges::sort(others);
  return others;
}

}  // namespace

HangDiagnosis collective_mismatch(const WorldState& world, const std::set<int>& ranks) {
  HangDiagnosis verdict{.kind = Kind::collective_mismatch};
  for (const int rank : in_rarest_call(world, ranks)) {
    verdict.suspects.push_back(
        suspect(world, rank,
                fmt::format("is in {}, where others are not: it has taken another branch",
                            text_of(*world.waiting(rank), world))));
  }
  return verdict;
}

std::optional<HangDiagnosis> analyse_histories(const WorldState& world) {
  for (const auto& [id, group] : world.groups) {
    std::set<std::uint64_t> places;
    for (const int rank : group.world_ranks) {
      if (const ToldCalls* const told = world.calls_on(rank, id)) {
        for (const CallsDigest& digest : told->digests) {
          places.insert(digest.calls);
        }
      }
    }
    for (const std::uint64_t calls : places) {
      HangDiagnosis verdict{.kind = Kind::collective_mismatch};
      for (const int rank : deviating(world, group, id, calls)) {
        verdict.suspects.push_back(suspect(
            world, rank,
            fmt::format("called other operations than the other ranks of '{}' among #{} to #{}: "
                        "it has taken another branch (what they computed since is wrong); {}",
                        group.name, calls - FlightRecorder::digest_every + 1, calls,
                        whereabouts(world, rank))));
      }
      if (!verdict.suspects.empty()) {
        return verdict;
      }
    }
  }
  return std::nullopt;
}

std::optional<HangDiagnosis> analyse_branches(const WorldState& world) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<int>> in_call;
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const ToldCall* const call = world.waiting(rank);
    if (call != nullptr && is_collective(call->operation)) {
      in_call[{call->group, call->sequence}].insert(rank);
    }
  }
  for (const auto& [call, ranks] : in_call) {
    const ToldCall& first = *world.waiting(*ranks.begin());
    if (std::ranges::any_of(ranks, [&](int rank) { return differ(first, *world.waiting(rank)); })) {
      return collective_mismatch(world, ranks);
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::comm
