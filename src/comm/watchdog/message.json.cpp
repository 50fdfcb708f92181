// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

#include <cstddef>
#include <cstdint>
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
  const auto operation = operation_named(json.at("operation").get<std::string>());
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

Json json_of(const Hello& hello) {
  return {{"type", "hello"}, {"rank", hello.rank}, {"host", hello.host}, {"pid", hello.pid}};
}

Json json_of(const NewGroup& group) {
  return {{"type", "group"},
          {"id", group.id},
          {"name", group.group.name},
          {"ranks", group.group.world_ranks}};
}

Json json_of(const Beat& beat) {
  Json collectives = Json::array();
  for (const auto& [group, calls] : beat.collectives) {
    collectives.push_back({group, calls.calls, calls.digests[0].calls, calls.digests[0].digest,
                           calls.digests[1].calls, calls.digests[1].digest});
  }
  return {{"type", "beat"},
          {"collectives", std::move(collectives)},
          {"waiting", or_null(beat.waiting)},
          {"last", or_null(beat.last)},
          {"activity", beat.activity},
          {"activity_s", beat.activity_s},
          {"fault", beat.fault},
          {"fault_s", beat.fault_s}};
}

Json json_of(const Bye& bye) {
  return {{"type", "bye"}, {"ends_all", bye.ends_all}};
}

Json json_of(const Tell& /*tell*/) {
  return {{"type", "tell"}};
}

Json json_of(const Told& told) {
  Json calls = Json::array();
  for (const ToldCall& call : told.calls) {
    calls.push_back(json_of(call));
  }
  return {{"type", "told"}, {"calls", std::move(calls)}, {"stack", told.stack}};
}

Json json_of(const End& end) {
  return {{"type", "end"}, {"code", end.code}};
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

Told told_from(const Json& json) {
  Told told{{}, json.at("stack")};
  for (const Json& call : json.at("calls")) {
    told.calls.push_back(call_of(call));
  }
  return told;
}

NewGroup group_from(const Json& json) {
  NewGroup told{count_in(json.at("id")), {json.at("name").get<std::string>(), {}}};
  for (const Json& rank : json.at("ranks").get_ref<const Json::array_t&>()) {
    told.group.world_ranks.push_back(rank_in(rank));
  }
  return told;
}

Message from_json(const Json& json) {
  const std::string type = json.at("type");
  if (type == "hello") {
    return Hello{rank_in(json.at("rank")), json.at("host"),
                 whole_number_of<long>(json.at("pid"), 0)};
  }
  if (type == "group") {
    return group_from(json);
  }
  if (type == "beat") {
    return beat_from(json);
  }
  if (type == "bye") {
    return Bye{.ends_all = json.value("ends_all", false)};
  }
  if (type == "tell") {
    return Tell{};
  }
  if (type == "told") {
    return told_from(json);
  }
  if (type == "end") {
    return End{whole_number_of<int>(json.at("code"), 0, highest_code)};
  }
  throw Json::other_error::create(501, "no such message", nullptr);
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

std::string line_of(const Message& message) {
  // File names and stacks are not always UTF-8.
  return json_text(std::visit([](const auto& each) { return json_of(each); }, message)) + "\n";
}

std::optional<Message> message_of(std::string_view line) {
  const Json json = json_if_any<Json>(line);
  try {
    return from_json(json);
  } catch (const Json::exception&) {
    return std::nullopt;
  }
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
