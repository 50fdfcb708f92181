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
    add_meta("process_name", 0, "name", timeline_.name);
    for (int rank = 0; rank < timeline_.stages; ++rank) {
      add_row(rank, 2 * rank + 1, fmt::format("rank {}", rank));
    }
    for (const schedule::TimelineSpan& span : timeline_.spans) {
      if (span.kind == schedule::SpanKind::communication) {
        add_beside(span.rank, span.name, "communication", span.begin_s, span.end_s,
                   span.collective ? described(*span.collective, span.end_s - span.begin_s)
                                   : ordered_json());
      } else {
        add_span(span);
      }
    }
    for (const TimelineEvent& event : timeline_.events) {
      if (is_compute(event.action.kind)) {
        add_slice(event);
      } else if (event.end_s > event.begin_s) {
        add_beside(event.rank, str(event.action, timeline_.chunks), name(event.action.kind),
                   event.begin_s, event.end_s, {});
      }
    }
    for (const auto& [key, event] : passes_) {
      add_arrow(*event);
    }
  }

 private:
  /// A pass of a micro-batch through a virtual stage: backward or not, stage, micro-batch.
  using Pass = std::tuple<bool, int, int>;

  ordered_json timed(const char* phase, int row, const std::string& name, std::string_view category,
                     double time_s) const {
    return {{"ph", phase},  {"pid", pid_},     {"tid", row},
            {"name", name}, {"cat", category}, {"ts", time_s * us_per_s}};
  }

  void add_meta(const char* what, int row, const char* key, const ordered_json& value) {
    events_.push_back(
        {{"ph", "M"}, {"pid", pid_}, {"tid", row}, {"name", what}, {"args", {{key, value}}}});
  }

  void add_row(int row, int place, const std::string& text) {
    add_meta("thread_name", row, "name", text);
    add_meta("thread_sort_index", row, "sort_index", place);
  }

  /// In a row of its own above that of the rank's actions.
  void add_span(const schedule::TimelineSpan& span) {
    const int row = timeline_.stages + span.rank;
    if (named_rows_.insert(row).second) {
      add_row(row, 2 * span.rank, fmt::format("rank {}, step", span.rank));
    }
    ordered_json json = timed("X", row, span.name, "step", span.begin_s);
    json["dur"] = (span.end_s - span.begin_s) * us_per_s;
    events_.push_back(std::move(json));
  }

  void add_slice(const TimelineEvent& event) {
    const Action& action = event.action;
    ordered_json json =
        timed("X", event.rank, str(action, timeline_.chunks), name(action.kind), event.begin_s);
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

  /// Beside what the rank does: a track of its own in the rank's.
  /// @param arguments  or null
  void add_beside(int rank, const std::string& name, std::string_view category, double begin_s,
                  double end_s, const ordered_json& arguments) {
    const std::int64_t id = next_id_++;
    for (const char* phase : {"b", "e"}) {
      ordered_json json = timed(phase, rank, name, category, *phase == 'b' ? begin_s : end_s);
      json["id"] = id;
      if (*phase == 'b' && !arguments.is_null()) {
        json["args"] = arguments;
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
      ordered_json json =
          timed(phase, end.rank, backward ? "gradient" : "activation", "message", end.begin_s);
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
