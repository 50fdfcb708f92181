// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hang_analysis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace fourfold::comm {
namespace {

using Kind = HangDiagnosis::Kind;
using SuspectRank = HangDiagnosis::SuspectRank;

/// A device executes calls long after its rank has made them.
bool is_in_another_call(const WorldState& world, int rank, const ToldCall& call) {
  const ToldCall* const its = world.waiting(rank);
  return its != nullptr && (its->group != call.group || its->sequence < call.sequence ||
                            is_collective(its->operation) != is_collective(call.operation));
}

/// Ranks for which `rank` waits, in `call`.
std::vector<int> waited_for(const WorldState& world, int rank, const ToldCall& call) {
  const ToldGroup* const group = world.group(call.group);
  if (group == nullptr) {
    return {};
  }
  const std::vector<int>& members = group->world_ranks;
  if (!is_collective(call.operation)) {
    const auto peer = world.peer_of(call);
    return peer ? std::vector{*peer} : std::vector<int>{};
  }
  std::vector<int> missing;
  std::ranges::copy_if(members, std::back_inserter(missing), [&](int member) {
    const ToldCalls* const its = world.calls_on(member, call.group);
    return member != rank && (its == nullptr ? 0 : its->calls) < call.sequence;
  });
  if (missing.empty()) {
    std::ranges::copy_if(members, std::back_inserter(missing), [&](int member) {
      return member != rank && is_in_another_call(world, member, call);
    });
  }
  return missing;
}

/// Machines of which no rank is left, of several.
std::set<std::string> ended_hosts(const WorldState& world) {
  std::map<std::string, std::pair<int, int>> hosts;  // ranks, those that are away
  for (const RankState& state : world.ranks) {
    ++hosts[state.host].first;
    hosts[state.host].second += state.is_away || state.has_ended ? 1 : 0;
  }
  std::set<std::string> ended;
  for (const auto& [host, ranks] : hosts) {
    if (ranks.first > 1 && ranks.first == ranks.second) {
      ended.insert(host);
    }
  }
  return ended.size() < hosts.size() ? ended : std::set<std::string>{};
}

/// @param what_of  what there is to say against a rank; empty: nothing
template <class WhatOf>
std::optional<HangDiagnosis> verdict_on(const WorldState& world, Kind kind, const WhatOf& what_of) {
  HangDiagnosis verdict{.kind = kind};
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const std::string what = what_of(world.ranks[rank]);
    if (!what.empty()) {
      verdict.suspects.push_back(
          suspect(world, rank, fmt::format("{}; {}", what, whereabouts(world, rank))));
    }
  }
  return verdict.suspects.empty() ? std::nullopt : std::optional(verdict);
}

std::optional<HangDiagnosis> analyse_ends(const WorldState& world) {
  const bool some = std::ranges::any_of(world.ranks, &RankState::has_ended);
  const std::set<std::string> hosts = some ? ended_hosts(world) : std::set<std::string>{};
  return verdict_on(
      world, hosts.empty() ? Kind::ended : Kind::host_ended, [&](const RankState& state) {
        const bool with_its_host = hosts.contains(state.host);
        return !with_its_host && !(state.has_ended && hosts.empty())
                   ? std::string()
                   : fmt::format("has ended without a word ({})",
                                 with_its_host
                                     ? "as have all ranks on its machine: that is gone, or its job"
                                     : "it called exit, or was killed");
      });
}

/// Of ranks of which `is_silent` says that they are.
template <class IsSilent>
Kind kind_of_silence(const WorldState& world, const IsSilent& is_silent) {
  return std::ranges::any_of(
             world.ranks,
             [&](const RankState& state) { return is_silent(state) && state.is_reachable; })
             ? Kind::stopped
             : Kind::unreachable;
}

std::optional<HangDiagnosis> analyse_silence(const WorldState& world,
                                             const WatchdogLimits& limits) {
  const auto is_silent = [&](const RankState& state) {
    return state.is_known && !state.has_left && !state.has_ended &&
           state.silent_s > limits.silence_s;
  };
  return verdict_on(world, kind_of_silence(world, is_silent), [&](const RankState& state) {
    return !is_silent(state)
               ? std::string()
               : fmt::format("has given no sign of life for {:.0f} s ({})", state.silent_s,
                             state.is_reachable
                                 ? "its machine answers: the process is stopped"
                                 : "nor does its machine: it or its network is gone");
  });
}

bool has_fault(const WorldState& world) {
  return std::ranges::any_of(world.ranks, [](const RankState& state) {
    return state.beat && !state.beat->fault.empty() && !state.has_left;
  });
}

/// Connections break for those that are connected, and whoever broke them says nothing. Late enough
/// that an ended rank, or a silent one, is known.
std::optional<HangDiagnosis> analyse_faults(const WorldState& world) {
  constexpr double for_others_to_show_s = 8;
  constexpr double silent_for_it_s = 5;
  auto faulty = verdict_on(world, Kind::faulty, [&](const RankState& state) {
    const bool is_faulty = state.beat && !state.beat->fault.empty() && !state.has_left &&
                           state.beat->fault_s > for_others_to_show_s;
    return is_faulty ? fmt::format("cannot communicate any more: {}", state.beat->fault)
                     : std::string();
  });
  if (!faulty) {
    return std::nullopt;
  }
  const auto is_silent = [&](const RankState& state) {
    return state.is_known && !state.has_left && state.silent_s > silent_for_it_s;
  };
  auto silent = verdict_on(world, kind_of_silence(world, is_silent), [&](const RankState& state) {
    return is_silent(state) ? fmt::format(
                                  "has given no sign of life for {:.0f} s, and others "
                                  "lost touch with it",
                                  state.silent_s)
                            : std::string();
  });
  return silent ? silent : faulty;
}

/// Whoever waits longest, if that is too long.
std::optional<int> latest(const WorldState& world, const WatchdogLimits& limits) {
  std::optional<int> found;
  double longest_s = limits.deadline_s;
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const RankState& state = world.ranks[rank];
    const ToldCall* const waiting = world.waiting(rank);
    if (waiting != nullptr && !state.has_left && waiting->since_s + state.silent_s > longest_s) {
      longest_s = waiting->since_s + state.silent_s;
      found = rank;
    }
  }
  return found;
}

std::optional<HangDiagnosis> analyse_lateness(const WorldState& world,
                                              const WatchdogLimits& limits) {
  const auto start = latest(world, limits);
  if (!start) {
    return std::nullopt;
  }
  HangDiagnosis verdict{.kind = Kind::late};
  std::set<int> seen{*start};
  std::vector<int> ahead{*start};
  while (!ahead.empty()) {
    const int rank = ahead.back();
    ahead.pop_back();
    const ToldCall* const waiting = world.waiting(rank);
    if (waiting == nullptr) {
      verdict.suspects.push_back(
          suspect(world, rank, fmt::format("has not come; {}", whereabouts(world, rank))));
      continue;
    }
    for (const int next : waited_for(world, rank, *waiting)) {
      if (seen.insert(next).second) {
        ahead.push_back(next);
      }
    }
  }
  if (!verdict.suspects.empty()) {
    std::ranges::sort(verdict.suspects, {}, &SuspectRank::rank);
    return verdict;
  }
  if (seen.size() > 1) {
    return collective_mismatch(world, seen);
  }
  verdict.suspects.push_back(
      suspect(world, *start,
              fmt::format("waits although all have come (the network or its library is stuck); {}",
                          whereabouts(world, *start))));
  return verdict;
}

/// By what ranks are in, as long as nothing is broken.
std::optional<HangDiagnosis> analyse_calls(const WorldState& world, const WatchdogLimits& limits) {
  auto verdict = analyse_branches(world);
  verdict = verdict ? verdict : analyse_histories(world);
  return verdict ? verdict : analyse_lateness(world, limits);
}

std::vector<int> who_waits(const WorldState& world, const HangDiagnosis& verdict) {
  std::vector<int> ranks;
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const bool is_suspect = std::ranges::count(verdict.suspects, rank, &SuspectRank::rank) > 0;
    if (world.waiting(rank) != nullptr && !is_suspect) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

}  // namespace

ExitCode HangDiagnosis::code() const noexcept {
  return kind == Kind::unreachable || kind == Kind::host_ended || kind == Kind::faulty
             ? ExitCode::node_fault
             : ExitCode::hang;
}

std::vector<std::string> HangDiagnosis::bad_hosts() const {
  std::set<std::string> hosts;
  if (kind == Kind::stopped || kind == Kind::unreachable || kind == Kind::host_ended ||
      kind == Kind::not_started) {
    for (const SuspectRank& one : suspects) {
      hosts.insert(one.host);
    }
  }
  hosts.erase("");
  return {hosts.begin(), hosts.end()};
}

std::optional<HangDiagnosis> analyse_hang(const WorldState& world, const WatchdogLimits& limits) {
  auto verdict = analyse_ends(world);
  if (!verdict) {
    verdict = analyse_silence(world, limits);
  }
  if (!verdict && has_fault(world)) {
    verdict = analyse_faults(world);
  } else if (!verdict) {
    verdict = analyse_calls(world, limits);
  }
  if (verdict) {
    verdict->waiting = who_waits(world, *verdict);
    verdict->reason = reason_of(world, *verdict);
  }
  return verdict;
}

}  // namespace fourfold::comm
