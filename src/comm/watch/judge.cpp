// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watch/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>
#include <set>
#include <utility>

namespace fourfold::comm {
namespace {

using Kind = HangVerdict::Kind;
using Culprit = HangVerdict::Culprit;

const Beat* beat_of(const WorldState& world, int rank) {
  const RankState& state = world.ranks[static_cast<std::size_t>(rank)];
  return state.beat ? &*state.beat : nullptr;
}

std::uint64_t calls_on(const WorldState& world, int rank, std::uint64_t group) {
  const Beat* const beat = beat_of(world, rank);
  const auto found =
      beat != nullptr ? beat->collectives.find(group) : decltype(beat->collectives.end()){};
  return beat != nullptr && found != beat->collectives.end() ? found->second.calls : 0;
}

bool is_silent(const RankState& state, const WatchLimits& limits) {
  return state.is_known && !state.has_left && !state.has_ended && state.silent_s > limits.silence_s;
}

/// "in all_reduce ... for 12 s" or "outside any call (saving step 500; its last was ...)".
std::string whereabouts(const WorldState& world, int rank) {
  const Beat* const beat = beat_of(world, rank);
  if (beat == nullptr) {
    return "nothing is known of its calls";
  }
  if (beat->waiting) {
    return fmt::format("it was in {}", text_of(*beat->waiting, world));
  }
  std::string text =
      fmt::format("it was outside any call ({} for {:.0f} s", beat->activity, beat->activity_s);
  if (beat->last) {
    text += fmt::format("; its last was {}", text_of(*beat->last, world));
  }
  return text + ")";
}

Culprit culprit(const WorldState& world, int rank, std::string what) {
  return {rank, world.ranks[static_cast<std::size_t>(rank)].host, std::move(what)};
}

/// Ranks for which `rank` waits.
std::vector<int> waited_for(const WorldState& world, int rank) {
  const Beat* const beat = beat_of(world, rank);
  if (beat == nullptr || !beat->waiting) {
    return {};
  }
  const ToldCall& call = *beat->waiting;
  const auto group = world.groups.find(call.group);
  if (group == world.groups.end()) {
    return {};
  }
  const std::vector<int>& members = group->second.world_ranks;
  if (!is_collective(call.operation)) {
    const auto peer = static_cast<std::size_t>(call.peer);
    return call.peer >= 0 && peer < members.size() ? std::vector{members[peer]}
                                                   : std::vector<int>{};
  }
  std::vector<int> missing;
  std::copy_if(members.begin(), members.end(), std::back_inserter(missing), [&](int member) {
    return member != rank && calls_on(world, member, call.group) < call.sequence;
  });
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

std::optional<HangVerdict> judge_ends(const WorldState& world) {
  const bool some = std::ranges::any_of(world.ranks, &RankState::has_ended);
  const std::set<std::string> hosts = some ? ended_hosts(world) : std::set<std::string>{};
  HangVerdict verdict{.kind = hosts.empty() ? Kind::ended : Kind::host_ended};
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const RankState& state = world.ranks[static_cast<std::size_t>(rank)];
    const bool with_its_host = hosts.contains(state.host);
    if (with_its_host || (state.has_ended && hosts.empty())) {
      verdict.culprits.push_back(culprit(
          world, rank,
          fmt::format("has ended without a word ({}); {}",
                      with_its_host ? "as have all ranks on its machine: that is gone, or its job"
                                    : "it called exit, or was killed",
                      whereabouts(world, rank))));
    }
  }
  return verdict.culprits.empty() ? std::nullopt : std::optional(verdict);
}

std::optional<HangVerdict> judge_silence(const WorldState& world, const WatchLimits& limits) {
  HangVerdict verdict{.kind = Kind::unreachable};
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const RankState& state = world.ranks[static_cast<std::size_t>(rank)];
    if (!is_silent(state, limits)) {
      continue;
    }
    if (state.is_reachable) {
      verdict.kind = Kind::stopped;
    }
    verdict.culprits.push_back(
        culprit(world, rank,
                fmt::format("has given no sign of life for {:.0f} s ({}); {}", state.silent_s,
                            state.is_reachable ? "its machine answers: the process is stopped"
                                               : "nor does its machine: it or its network is gone",
                            whereabouts(world, rank))));
  }
  return verdict.culprits.empty() ? std::nullopt : std::optional(verdict);
}

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
    const ToldCall& call = *beat_of(world, rank)->waiting;
    const auto company = std::ranges::count_if(world.ranks, [&](const RankState& other) {
      return other.beat && other.beat->waiting && is_same(call, *other.beat->waiting);
    });
    by_company[company].push_back(rank);
  }
  return by_company.begin()->second;
}

HangVerdict other_branch(const WorldState& world, const std::set<int>& ranks) {
  HangVerdict verdict{.kind = Kind::other_branch};
  for (const int rank : in_rarest_call(world, ranks)) {
    verdict.culprits.push_back(
        culprit(world, rank,
                fmt::format("is in {}, where others are not: it has taken another branch",
                            text_of(*beat_of(world, rank)->waiting, world))));
  }
  return verdict;
}

/// What a rank's calls on a group amounted to after so many; nothing when it has not said.
std::optional<std::uint64_t> digest_at(const WorldState& world, int rank, std::uint64_t group,
                                       std::uint64_t calls) {
  const Beat* const beat = beat_of(world, rank);
  const auto found =
      beat != nullptr ? beat->collectives.find(group) : decltype(beat->collectives.end()){};
  if (beat == nullptr || found == beat->collectives.end() || calls == 0) {
    return std::nullopt;
  }
  for (const CallsDigest& digest : found->second.digests) {
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

/// Calls that got through although they were not the same: what they exchanged is not what was
/// meant.
std::optional<HangVerdict> judge_histories(const WorldState& world) {
  for (const auto& [id, group] : world.groups) {
    std::set<std::uint64_t> places;
    for (const int rank : group.world_ranks) {
      const Beat* const beat = beat_of(world, rank);
      if (beat != nullptr && beat->collectives.contains(id)) {
        for (const CallsDigest& digest : beat->collectives.at(id).digests) {
          places.insert(digest.calls);
        }
      }
    }
    for (const std::uint64_t calls : places) {
      HangVerdict verdict{.kind = Kind::other_branch};
      for (const int rank : deviating(world, group, id, calls)) {
        verdict.culprits.push_back(culprit(
            world, rank,
            fmt::format("called other operations than the other ranks of '{}' among #{} to #{}: "
                        "it has taken another branch (what they computed since is wrong); {}",
                        group.name, calls - FlightRecorder::digest_every + 1, calls,
                        whereabouts(world, rank))));
      }
      if (!verdict.culprits.empty()) {
        return verdict;
      }
    }
  }
  return std::nullopt;
}

std::optional<HangVerdict> judge_branches(const WorldState& world) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<int>> in_call;
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const Beat* const beat = beat_of(world, rank);
    if (beat != nullptr && beat->waiting && is_collective(beat->waiting->operation)) {
      in_call[{beat->waiting->group, beat->waiting->sequence}].insert(rank);
    }
  }
  for (const auto& [call, ranks] : in_call) {
    const ToldCall& first = *beat_of(world, *ranks.begin())->waiting;
    if (std::any_of(ranks.begin(), ranks.end(),
                    [&](int rank) { return differ(first, *beat_of(world, rank)->waiting); })) {
      return other_branch(world, ranks);
    }
  }
  return std::nullopt;
}

/// Whoever waits longest, if that is too long.
std::optional<int> latest(const WorldState& world, const WatchLimits& limits) {
  std::optional<int> found;
  double longest_s = limits.deadline_s;
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const RankState& state = world.ranks[static_cast<std::size_t>(rank)];
    const Beat* const beat = beat_of(world, rank);
    if (beat != nullptr && beat->waiting && !state.has_left &&
        beat->waiting->since_s + state.silent_s > longest_s) {
      longest_s = beat->waiting->since_s + state.silent_s;
      found = rank;
    }
  }
  return found;
}

std::optional<HangVerdict> judge_lateness(const WorldState& world, const WatchLimits& limits) {
  const auto start = latest(world, limits);
  if (!start) {
    return std::nullopt;
  }
  HangVerdict verdict{.kind = Kind::late};
  std::set<int> seen{*start};
  std::vector<int> ahead{*start};
  while (!ahead.empty()) {
    const int rank = ahead.back();
    ahead.pop_back();
    const Beat* const beat = beat_of(world, rank);
    if (beat == nullptr || !beat->waiting) {
      verdict.culprits.push_back(
          culprit(world, rank, fmt::format("has not come; {}", whereabouts(world, rank))));
      continue;
    }
    for (const int next : waited_for(world, rank)) {
      if (seen.insert(next).second) {
        ahead.push_back(next);
      }
    }
  }
  if (!verdict.culprits.empty()) {
    std::sort(verdict.culprits.begin(), verdict.culprits.end(),
              [](const Culprit& a, const Culprit& b) { return a.rank < b.rank; });
    return verdict;
  }
  if (seen.size() > 1) {
    return other_branch(world, seen);
  }
  verdict.culprits.push_back(
      culprit(world, *start,
              fmt::format("waits although all have come (the network or its library is stuck); {}",
                          whereabouts(world, *start))));
  return verdict;
}

std::vector<int> who_waits(const WorldState& world, const HangVerdict& verdict) {
  std::vector<int> ranks;
  for (int rank = 0; rank < std::ssize(world.ranks); ++rank) {
    const Beat* const beat = beat_of(world, rank);
    const bool is_culprit = std::ranges::count(verdict.culprits, rank, &Culprit::rank) > 0;
    if (beat != nullptr && beat->waiting && !is_culprit) {
      ranks.push_back(rank);
    }
  }
  return ranks;
}

/// The culprits, a line each, and who waits in what.
std::string reason_of(const WorldState& world, const HangVerdict& verdict) {
  constexpr std::size_t shown = 8;
  std::vector<std::string> lines;
  for (const Culprit& one : verdict.culprits) {
    if (lines.size() == shown) {
      lines.push_back(fmt::format("and {} more", verdict.culprits.size() - shown));
      break;
    }
    lines.push_back(fmt::format("rank {} on {} {}", one.rank, one.host, one.what));
  }
  std::map<std::string, std::vector<int>> waits;
  for (const int rank : verdict.waiting) {
    waits[text_of(*beat_of(world, rank)->waiting, world)].push_back(rank);
  }
  for (const auto& [call, ranks] : waits) {
    if (lines.size() >= 2 * shown) {
      lines.emplace_back("...");
      break;
    }
    lines.push_back(
        fmt::format("{} wait{} in {}", ranks_text(ranks), ranks.size() == 1 ? "s" : "", call));
  }
  return fmt::format("{}", fmt::join(lines, "\n  "));
}

}  // namespace

std::string text_of(const ToldCall& call, const WorldState& world) {
  const auto group = world.groups.find(call.group);
  const std::string where =
      group == world.groups.end() ? "a communicator" : fmt::format("'{}'", group->second.name);
  std::string peer;
  if (!is_collective(call.operation) && group != world.groups.end() && call.peer >= 0 &&
      call.peer < std::ssize(group->second.world_ranks)) {
    peer = fmt::format(", {} rank {}", call.operation == Operation::send ? "to" : "from",
                       group->second.world_ranks[static_cast<std::size_t>(call.peer)]);
  }
  return fmt::format("{} #{} of {}{} ({} bytes, {})", name(call.operation), call.sequence, where,
                     peer, call.bytes, call.site);
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> parts;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) {
      ++last;
    }
    parts.push_back(first == last ? fmt::format("{}", ranks[first])
                                  : fmt::format("{}-{}", ranks[first], ranks[last]));
    first = last + 1;
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(parts, ", "));
}

ExitCode HangVerdict::code() const noexcept {
  return kind == Kind::unreachable || kind == Kind::host_ended ? ExitCode::node_fault
                                                               : ExitCode::hang;
}

std::vector<std::string> HangVerdict::bad_hosts() const {
  std::set<std::string> hosts;
  if (kind == Kind::stopped || kind == Kind::unreachable || kind == Kind::host_ended ||
      kind == Kind::not_started) {
    for (const Culprit& one : culprits) {
      hosts.insert(one.host);
    }
  }
  hosts.erase("");
  return {hosts.begin(), hosts.end()};
}

std::optional<HangVerdict> judge(const WorldState& world, const WatchLimits& limits) {
  auto verdict = judge_ends(world);
  if (!verdict) {
    verdict = judge_silence(world, limits);
  }
  if (!verdict) {
    verdict = judge_branches(world);
  }
  if (!verdict) {
    verdict = judge_histories(world);
  }
  if (!verdict) {
    verdict = judge_lateness(world, limits);
  }
  if (verdict) {
    verdict->waiting = who_waits(world, *verdict);
    verdict->reason = reason_of(world, *verdict);
  }
  return verdict;
}

}  // namespace fourfold::comm
