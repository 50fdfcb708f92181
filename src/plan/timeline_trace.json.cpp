// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>
#include <fourfold/plan/timeline_trace.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <tuple>

namespace fourfold::plan {
namespace {

using nlohmann::ordered_json;
using schedule::Action;
using schedule::ActionKind;
using schedule::TimelineEvent;

constexpr double us_per_s = 1e6;

/// Writes one timeline as process `pid`.
class Process {
 public:
  Process(const schedule::Timeline& timeline, int pid, ordered_json& events)
      : timeline_(timeline), pid_(pid), events_(events) {}

  void write() {
    add_name("process_name", 0, timeline_.name);
    for (int rank = 0; rank < timeline_.stages; ++rank) {
      add_row(rank, 2 * rank + 1, fmt::format("rank {}", rank));
    }
    for (const schedule::TimelineSpan& span : timeline_.spans) {
      if (span.kind == schedule::SpanKind::communication) {
        add_collective(span);
      } else {
        add_span(span);
      }
    }
    for (const TimelineEvent& event : timeline_.events) {
      if (is_compute(event.action.kind)) {
        add_slice(event);
      } else if (event.end_s > event.begin_s) {
        add_message(event);
      }
    }
    for (const auto& [key, event] : passes_) {
      add_arrow(*event);
    }
  }

 private:
  /// A pass of a micro-batch through a virtual stage: backward or not, stage, micro-batch.
  using Pass = std::tuple<bool, int, int>;

  ordered_json head(const char* phase, int rank) const {
    return {{"ph", phase}, {"pid", pid_}, {"tid", rank}};
  }

  void add_name(const char* what, int rank, const std::string& text) {
    ordered_json event = head("M", rank);
    event["name"] = what;
    event["args"] = {{"name", text}};
    events_.push_back(std::move(event));
  }

  void add_row(int row, int place, const std::string& text) {
    add_name("thread_name", row, text);
    ordered_json event = head("M", row);
    event["name"] = "thread_sort_index";
    event["args"] = {{"sort_index", place}};
    events_.push_back(std::move(event));
  }

  /// In a row of its own above that of the rank's actions.
  void add_span(const schedule::TimelineSpan& span) {
    const int row = timeline_.stages + span.rank;
    if (named_rows_.insert(row).second) {
      add_row(row, 2 * span.rank, fmt::format("rank {}, step", span.rank));
    }
    ordered_json json = head("X", row);
    json["name"] = span.name;
    json["cat"] = "step";
    json["ts"] = span.begin_s * us_per_s;
    json["dur"] = (span.end_s - span.begin_s) * us_per_s;
    events_.push_back(std::move(json));
  }

  ordered_json described(const char* phase, const TimelineEvent& event, double time_s) const {
    ordered_json json = head(phase, event.rank);
    json["name"] = str(event.action, timeline_.chunks);
    json["cat"] = std::string(name(event.action.kind));
    json["ts"] = time_s * us_per_s;
    return json;
  }

  void add_slice(const TimelineEvent& event) {
    const Action& action = event.action;
    ordered_json json = described("X", event, event.begin_s);
    json["dur"] = (event.end_s - event.begin_s) * us_per_s;
    json["args"] = {{"micro_batch", action.micro_batch},
                    {"chunk", action.chunk},
                    {"stage", timeline_.virtual_stage_of(event)},
                    {"slot", action.slot}};
    events_.push_back(std::move(json));
    if (action.kind != ActionKind::backward_weight) {
      passes_[pass_of(event)] = &event;
    }
  }

  void add_message(const TimelineEvent& event) {
    const std::int64_t id = next_id_++;
    for (const char* phase : {"b", "e"}) {
      ordered_json json = described(phase, event, *phase == 'b' ? event.begin_s : event.end_s);
      json["id"] = id;
      events_.push_back(std::move(json));
    }
  }

  /// Beside what the rank does: a track of its own in the rank's.
  void add_collective(const schedule::TimelineSpan& span) {
    const std::int64_t id = next_id_++;
    for (const char* phase : {"b", "e"}) {
      ordered_json json = head(phase, span.rank);
      json["name"] = span.name;
      json["cat"] = "communication";
      json["ts"] = (*phase == 'b' ? span.begin_s : span.end_s) * us_per_s;
      json["id"] = id;
      if (*phase == 'b' && span.collective) {
        json["args"] = described(*span.collective, span.end_s - span.begin_s);
      }
      events_.push_back(std::move(json));
    }
  }

  static ordered_json described(const schedule::CollectiveFacts& collective, double time_s) {
    ordered_json json{{"operation", collective.operation},
                      {"communicator", collective.communicator},
                      {"ranks", collective.ranks},
                      {"bytes", collective.bytes}};
    if (time_s > 0) {
      json["busbw_gb_s"] = bus_gb_s(collective, time_s);
    }
    return json;
  }

  Pass pass_of(const TimelineEvent& event) const {
    return {event.action.kind != ActionKind::forward, timeline_.virtual_stage_of(event),
            event.action.micro_batch};
  }

  /// From the pass that makes what this one needs, if that is on another rank.
  void add_arrow(const TimelineEvent& to) {
    auto [backward, stage, micro_batch] = pass_of(to);
    const auto from = passes_.find({backward, stage + (backward ? 1 : -1), micro_batch});
    if (from == passes_.end() || from->second->rank == to.rank) {
      return;
    }
    const std::int64_t id = next_id_++;
    for (const char* phase : {"s", "f"}) {
      const TimelineEvent& end = *phase == 's' ? *from->second : to;
      ordered_json json = head(phase, end.rank);
      json["name"] = backward ? "gradient" : "activation";
      json["cat"] = "message";
      json["ts"] = end.begin_s * us_per_s;
      json["id"] = id;
      if (*phase == 'f') {
        json["bp"] = "e";
      }
      events_.push_back(std::move(json));
    }
  }

  const schedule::Timeline& timeline_;
  std::int64_t pid_;
  ordered_json& events_;
  std::map<Pass, const TimelineEvent*> passes_;
  std::set<int> named_rows_;
  /// Of messages and arrows: another range in every process.
  std::int64_t next_id_ = pid_ << 32;
};

}  // namespace

bool is_older_timeline_trace(std::string_view beginning) {
  constexpr std::string_view process =
      R"({"displayTimeUnit":"ms","traceEvents":[{"ph":"M","pid":1,"tid":0,"name":"process_name","args":{"name":")";
  constexpr std::string_view first_row =
      R"("}},{"ph":"M","pid":1,"tid":0,"name":"thread_name","args":{"name":"rank 0"}},{"ph":"M",)";
  return beginning.starts_with(process) && beginning.find(first_row) != std::string_view::npos;
}

std::string timeline_trace(std::span<const schedule::Timeline> timelines) {
  ordered_json events = ordered_json::array();
  int pid = 0;
  for (const schedule::Timeline& timeline : timelines) {
    Process(timeline, ++pid, events).write();
  }
  return json_text(ordered_json{{"otherData", {{"made_by", "fourfold"}}},
                                {"displayTimeUnit", "ms"},
                                {"traceEvents", std::move(events)}}) +
         "\n";
}

}  // namespace fourfold::plan
