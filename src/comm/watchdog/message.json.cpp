// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

namespace fourfold::comm {
namespace {

using Json = nlohmann::json;

constexpr int highest_code = 255;

int rank_in(const Json& json) {
  return whole_number_of<int>(json, 0);
}
std::uint64_t count_in(const Json& json) {
  return whole_number_of<std::uint64_t>(json);
}

Json json_of(const ToldCall& call) {
  return {{"operation", name(call.operation)},
          {"group", call.group},
          {"sequence", call.sequence},
          {"bytes", call.bytes},
          {"peer", call.peer},
          {"site", call.site},
          {"since_s", call.since_s},
          {"is_over", call.is_over}};
}

ToldCall call_of(const Json& json) {
  const auto operation = value_named<Operation>(json.at("operation").get<std::string>());
  if (!operation) {
    throw Json::other_error::create(501, "no such operation", nullptr);
  }
  return {.operation = *operation,
          .group = count_in(json.at("group")),
          .sequence = count_in(json.at("sequence")),
          .bytes = whole_number_of<std::int64_t>(json.at("bytes"), 0),
          .peer = whole_number_of<int>(json.at("peer"), -1),
          .site = json.at("site"),
          .since_s = json.at("since_s"),
          .is_over = json.at("is_over")};
}

Json or_null(const std::optional<ToldCall>& call) {
  return call ? json_of(*call) : Json(nullptr);
}

std::optional<ToldCall> if_any(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(call_of(json));
}

Json json_of(const Beat& beat) {
  Json collectives = Json::array();
  for (const auto& [group, calls] : beat.collectives) {
    collectives.push_back({group, calls.calls, calls.digests[0].calls, calls.digests[0].digest,
                           calls.digests[1].calls, calls.digests[1].digest});
  }
  return {{"collectives", std::move(collectives)},
          {"waiting", or_null(beat.waiting)},
          {"last", or_null(beat.last)},
          {"activity", beat.activity},
          {"activity_s", beat.activity_s},
          {"fault", beat.fault},
          {"fault_s", beat.fault_s}};
}

std::vector<ToldCall> calls_from(const Json& json) {
  std::vector<ToldCall> calls;
  std::ranges::transform(json, std::back_inserter(calls), call_of);
  return calls;
}

Beat beat_from(const Json& json) {
  Beat beat{.collectives = {},
            .waiting = if_any(json.at("waiting")),
            .last = if_any(json.at("last")),
            .activity = json.at("activity"),
            .activity_s = json.at("activity_s"),
            .fault = json.at("fault"),
            .fault_s = json.at("fault_s")};
  for (const Json& entry : json.at("collectives")) {
    const auto number = [&](std::size_t i) { return count_in(entry.at(i)); };
    beat.collectives[number(0)] = {number(1), {{{number(2), number(3)}, {number(4), number(5)}}}};
  }
  return beat;
}

std::map<std::uint64_t, ToldGroup> groups_from(const Json& json) {
  std::map<std::uint64_t, ToldGroup> groups;
  for (const Json& each : json) {
    ToldGroup& group = groups[count_in(each.at("id"))];
    group.name = each.at("name");
    for (const Json& rank : each.at("ranks").get_ref<const Json::array_t&>()) {
      group.world_ranks.push_back(rank_in(rank));
    }
  }
  return groups;
}

/// @return nothing where `read` finds other JSON than it expects
template <class Read>
auto read_line(std::string_view line, const Read& read) {
  const Json json = json_if_any<Json>(line);
  try {
    return std::optional(read(json));
  } catch (const Json::exception&) {
    return decltype(std::optional(read(json)))();
  }
}

double seconds(FlightRecord::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

ToldCall told(const FlightRecord& record, const FlightSnapshot& snapshot) {
  const std::string path = record.call.where.file_name();
  return {.operation = record.call.operation,
          .group = snapshot.groups[record.communicator].id,
          .sequence = record.sequence,
          .bytes = record.call.bytes,
          .peer = record.call.peer,
          .site = path.substr(path.find_last_of('/') + 1) + ":" +
                  std::to_string(record.call.where.line()),
          .since_s = seconds(FlightRecord::Clock::now() - record.entered),
          .is_over = record.left.has_value()};
}

}  // namespace

std::string line_of(const RankMessage& message) {
  Json groups = Json::array();
  for (const auto& [id, group] : message.groups) {
    groups.push_back({{"id", id}, {"name", group.name}, {"ranks", group.world_ranks}});
  }
  Json calls = Json::array();
  std::ranges::transform(message.calls, std::back_inserter(calls),
                         [](const ToldCall& call) { return json_of(call); });
  const Json json{{"rank", message.rank},
                  {"host", message.host},
                  {"pid", message.pid},
                  {"groups", std::move(groups)},
                  {"beat", message.beat ? json_of(*message.beat) : Json(nullptr)},
                  {"leaves", message.leaves},
                  {"ends_all", message.ends_all},
                  {"answers", message.answers},
                  {"calls", std::move(calls)},
                  {"stack", message.stack}};
  return json_text(json) + "\n";  // file names and stacks are not always UTF-8
}

std::string line_of(const ServerMessage& message) {
  return json_text(Json{{"end", message.end_code ? Json(*message.end_code) : Json(nullptr)}}) +
         "\n";
}

std::optional<RankMessage> rank_message_of(std::string_view line) {
  return read_line(line, [](const Json& json) {
    const Json& beat = json.at("beat");
    return RankMessage{.rank = rank_in(json.at("rank")),
                       .host = json.at("host"),
                       .pid = whole_number_of<long>(json.at("pid"), 0),
                       .groups = groups_from(json.at("groups")),
                       .beat = beat.is_null() ? std::nullopt : std::optional(beat_from(beat)),
                       .leaves = json.at("leaves"),
                       .ends_all = json.at("ends_all"),
                       .answers = json.at("answers"),
                       .calls = calls_from(json.at("calls")),
                       .stack = json.at("stack")};
  });
}

std::optional<ServerMessage> server_message_of(std::string_view line) {
  return read_line(line, [](const Json& json) {
    const Json& code = json.at("end");
    return code.is_null() ? ServerMessage{}
                          : ServerMessage{whole_number_of<int>(code, 0, highest_code)};
  });
}

Beat beat_of(const FlightSnapshot& snapshot) {
  Beat beat{.activity = snapshot.activity,
            .activity_s = seconds(FlightRecord::Clock::now() - snapshot.activity_began)};
  for (const RecordedGroup& group : snapshot.groups) {
    beat.collectives[group.id] = {group.collectives, group.digests};
  }
  if (snapshot.waiting) {
    beat.waiting = told(*snapshot.waiting, snapshot);
  }
  if (!snapshot.recent.empty()) {
    beat.last = told(snapshot.recent.back(), snapshot);
  }
  if (!snapshot.fault.empty()) {
    beat.fault = snapshot.fault;
    beat.fault_s = seconds(FlightRecord::Clock::now() - snapshot.fault_began);
  }
  return beat;
}

std::vector<ToldCall> calls_of(const FlightSnapshot& snapshot) {
  std::vector<ToldCall> calls;
  for (const FlightRecord& record : snapshot.recent) {
    calls.push_back(told(record, snapshot));
  }
  return calls;
}

}  // namespace fourfold::comm
