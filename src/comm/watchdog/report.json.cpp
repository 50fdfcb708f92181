// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hang_analysis.hpp"
#include "watchdog_server.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace fourfold::comm {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name(HangDiagnosis::Kind kind) {
  constexpr std::array<std::string_view, 8> names{"ended",       "host ended",   "stopped",
                                                  "unreachable", "other branch", "late",
                                                  "not started", "faulty"};
  return names[static_cast<std::size_t>(kind)];
}

Json json_of(const ToldCall& call, const WorldState& world) {
  const ToldGroup* const group = world.group(call.group);
  Json json{{"operation", name(call.operation)},
            {"communicator", group == nullptr ? "" : group->name},
            {"number", call.sequence},
            {"bytes", call.bytes}};
  if (const auto peer = world.peer_of(call)) {
    json["peer"] = *peer;
  }
  json["site"] = call.site;
  json["entered_s_ago"] = call.since_s;
  json["left"] = call.is_over;
  return json;
}

Json json_of(int rank, const WorldState& world, const std::map<int, RankMessage>& answers) {
  const RankState& state = world.ranks[rank];
  Json json{{"rank", rank}, {"host", state.host}, {"pid", state.pid}, {"silent_s", state.silent_s}};
  if (state.beat) {
    json["activity"] = state.beat->activity;
    json["activity_s"] = state.beat->activity_s;
    json["waits_in"] = state.beat->waiting ? json_of(*state.beat->waiting, world) : Json(nullptr);
  }
  const auto answer = answers.find(rank);
  json["calls"] = Json::array();
  if (answer != answers.end()) {
    for (const ToldCall& call : answer->second.calls) {
      json["calls"].push_back(json_of(call, world));
    }
    json["stack"] = answer->second.stack;
  } else if (state.beat && state.beat->last) {
    json["calls"].push_back(json_of(*state.beat->last, world));
  }
  return json;
}

}  // namespace

std::string report_of(const WorldState& world, const HangDiagnosis& verdict,
                      const std::map<int, RankMessage>& answers) {
  constexpr std::size_t most_ranks = 512;  // of thousands that wait, some will do
  std::set<int> shown;
  Json suspects = Json::array();
  for (const HangDiagnosis::SuspectRank& one : verdict.suspects) {
    suspects.push_back({{"rank", one.rank}, {"host", one.host}, {"what", one.what}});
    shown.insert(one.rank);
  }
  for (int rank = 0; rank < std::ssize(world.ranks) && shown.size() < most_ranks; ++rank) {
    shown.insert(rank);
  }
  Json json{{"code", static_cast<int>(verdict.code())},
            {"kind", name(verdict.kind)},
            {"reason", verdict.reason},
            {"culprits", std::move(suspects)},
            {"waiting", verdict.waiting},
            {"ranks", Json::array()}};
  for (const int rank : shown) {
    json["ranks"].push_back(json_of(rank, world, answers));
  }
  return json_text(json, 2) + "\n";
}

}  // namespace fourfold::comm
