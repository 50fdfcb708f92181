// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hang_analysis.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <utility>
#include <vector>

namespace fourfold::comm {

using SuspectRank = HangDiagnosis::SuspectRank;

std::string text_of(const ToldCall& call, const WorldState& world) {
  const ToldGroup* const group = world.group(call.group);
  const std::string where =
      group == nullptr ? "a communicator" : format_message("'{}'", group->name);
  std::string peer;
  if (const auto rank = world.peer_of(call); rank && !is_collective(call.operation)) {
    peer = format_message(", {} rank {}", call.operation == Operation::send ? "to" : "from", *rank);
  }
  return format_message("{} #{} of {}{} ({} bytes, {})", name(call.operation), call.sequence, where,
                        peer, call.bytes, call.site);
}

std::string whereabouts(const WorldState& world, int rank) {
  const Beat* const beat = world.beat_of(rank);
  if (beat == nullptr) {
    return "nothing is known of its calls";
  }
  if (beat->waiting) {
    return format_message("it was in {}", text_of(*beat->waiting, world));
  }
  constexpr double between_signs_s = 2;
  const RankState& state = world.ranks[rank];
  const bool is_old = state.has_ended || state.silent_s > between_signs_s;
  std::string text =
      format_message("it was outside any call{} ({} for {:.0f} s",
                     is_old ? ", as it said last" : "", beat->activity, beat->activity_s);
  if (beat->last) {
    text += format_message("; its last was {}", text_of(*beat->last, world));
  }
  return text + ")";
}

SuspectRank suspect(const WorldState& world, int rank, std::string what) {
  return {rank, world.ranks[rank].host, std::move(what)};
}

std::string reason_of(const WorldState& world, const HangDiagnosis& verdict) {
  constexpr std::size_t shown = 8;
  std::vector<std::string> lines;
  for (const SuspectRank& one : verdict.suspects) {
    if (lines.size() == shown) {
      lines.push_back(format_message("and {} more", verdict.suspects.size() - shown));
      break;
    }
    lines.push_back(format_message("rank {} on {} {}", one.rank, one.host, one.what));
  }
  std::map<std::string, std::vector<int>> waits;
  for (const int rank : verdict.waiting) {
    waits[text_of(*world.waiting(rank), world)].push_back(rank);
  }
  for (const auto& [call, ranks] : waits) {
    if (lines.size() >= 2 * shown) {
      lines.emplace_back("...");
      break;
    }
    lines.push_back(
        format_message("{} wait{} in {}", ranks_text(ranks), ranks.size() == 1 ? "s" : "", call));
  }
  return format_message("{}", fmt::join(lines, "\n  "));
}

}  // namespace fourfold::comm
