// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_fields.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/metrics_reader.hpp>

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <limits>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold::telemetry {
namespace {

using simdjson::dom::element;

static_assert(io::LineReader::padding_bytes >= simdjson::SIMDJSON_PADDING);

/// How the line of a step begins as MetricsFile writes it. Nearly all lines are such, and the first
/// reading need not look into them.
constexpr std::string_view step_line_head = R"({"event":"step",)";

/// What `value` is if it is a T, else `otherwise`. @param value  an element, or the result of a
/// look
template <class T, class Value>
T get_or(const Value& value, T otherwise) {
  T found{};
  return value.get(found) == simdjson::SUCCESS ? found : otherwise;
}

/// A line as a person may have damaged it: every look-up has an answer.
class Line {
 public:
  /// @param text  with as many bytes after it as simdjson may read
  Line(simdjson::dom::parser& parser, std::string_view text) {
    element document;
    is_object_ = parser.parse(text.data(), text.size(), false).get(document) == simdjson::SUCCESS &&
                 document.get(object_) == simdjson::SUCCESS;
  }

  bool is_object() const { return is_object_; }
  std::string_view view(std::string_view key) const {
    return get_or(object_[key], std::string_view());
  }
  std::string text(std::string_view key) const { return std::string(view(key)); }
  /// NaN for null, which is how numbers that are not finite are written; 0 when absent.
  double number(std::string_view key) const {
    element value;
    return object_[key].get(value) == simdjson::SUCCESS
               ? get_or(value, std::numeric_limits<double>::quiet_NaN())
               : 0;
  }
  std::int64_t integer(std::string_view key) const { return get_or(object_[key], std::int64_t{0}); }
  std::vector<std::string> texts(std::string_view key) const {
    std::vector<std::string> result;
    for_each_in(key, [&](const element& each) {
      result.emplace_back(get_or(each, std::string_view("?")));
    });
    return result;
  }
  std::vector<std::pair<std::string, std::string>> pairs(std::string_view key) const {
    std::vector<std::pair<std::string, std::string>> result;
    for_each_in(key, [&](const element& each) {
      simdjson::dom::array pair;
      std::string_view name;
      std::string_view value;
      if (each.get(pair) == simdjson::SUCCESS && pair.size() == 2 &&
          pair.at(0).get(name) == simdjson::SUCCESS && pair.at(1).get(value) == simdjson::SUCCESS) {
        result.emplace_back(name, value);
      }
    });
    return result;
  }
  std::vector<std::pair<std::string, std::int64_t>> integers(std::string_view key) const {
    std::vector<std::pair<std::string, std::int64_t>> result;
    simdjson::dom::object values;
    if (object_[key].get(values) == simdjson::SUCCESS) {
      for (const auto& [name, each] : values) {
        result.emplace_back(name, get_or(each, std::int64_t{0}));
      }
    }
    return result;
  }
  /// Walks all members once, in their order: a step has a dozen.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [key, value] : object_) {
      visit(key, value);
    }
  }

 private:
  template <class Visit>
  void for_each_in(std::string_view key, const Visit& visit) const {
    simdjson::dom::array array;
    if (object_[key].get(array) == simdjson::SUCCESS) {
      for (const element each : array) {
        visit(each);
      }
    }
  }

  simdjson::dom::object object_;
  bool is_object_ = false;
};

RunStart start_of(const Line& line) {
  RunStart run;
  run.first_step = line.integer("from_step");
  run.steps = line.integer("steps");
  run.checkpoint = line.text("checkpoint");
  run.version = line.text("version");
  run.mesh = line.text("mesh");
  run.device = line.text("device");
  run.precision = line.text("precision");
  run.rank_hosts = line.texts("rank_hosts");
  run.parameters = line.integer("parameters");
  run.tokens_per_step = line.integer("tokens_per_step");
  run.data_plane_bytes = line.integer("data_plane_bytes");
  run.flop_per_token = line.number("flop_per_token");
  run.peak_flop_per_s = line.number("peak_flop_per_s");
  run.libraries = line.pairs("libraries");
  return run;
}

StepRecord step_of(const Line& line) {
  StepRecord record;
  line.for_each([&](std::string_view key, const element& value) {
    const auto field = std::ranges::find(step_fields, key, &StepField::key);
    if (field != step_fields.end()) {
      std::visit(
          [&]<class Number>(Number StepRecord::*member) {
            record.*member = get_or(value, std::numeric_limits<Number>::quiet_NaN());  // or 0
          },
          field->number);
    }
  });
  return record;
}

/// @return whether the line was understood; unknown events of later versions are
bool pass_on(const Line& line, std::int64_t last_step_that_counts, MetricSink& sink) {
  const std::string_view event = line.view("event");
  const double time_s = line.number("time");
  if (event == "step") {
    const StepRecord record = step_of(line);
    if (record.step <= last_step_that_counts) {
      sink.step(record, time_s);
    }
    return true;
  }
  const std::int64_t step = line.integer("step");
  const bool counts = step <= last_step_that_counts;
  if (event == "start" || event == "resume") {
    sink.start(start_of(line), time_s);
  } else if (event == "eval" && counts) {
    sink.evaluation({step, line.number("loss"), line.integer("tokens"), line.number("eval_s")},
                    time_s);
  } else if (event == "checkpoint" && counts) {
    sink.checkpoint({step, line.text("path"), line.integer("bytes"), line.number("save_s"),
                     line.number("committed_s")},
                    time_s);
  } else if (event == "memory") {
    sink.memory({step, static_cast<int>(line.integer("rank")), line.integers("planned_bytes"),
                 line.integer("taken_bytes"), line.integer("device_used_bytes"),
                 line.integer("device_total_bytes")},
                time_s);
  } else if (event == "end") {
    sink.end({step, static_cast<ExitCode>(line.integer("code")), line.text("reason")}, time_s);
  }
  return !event.empty();
}

}  // namespace

MetricsReader::MetricsReader(const std::filesystem::path& file) : lines_(file) {
  simdjson::dom::parser parser;
  std::string_view text;
  for (std::int64_t number = 0; lines_.next(text); ++number) {
    if (text.starts_with(step_line_head)) {
      ++step_lines_;
      continue;
    }
    const Line line(parser, text);
    const std::string_view event = line.is_object() ? line.view("event") : std::string_view();
    if (event == "step") {
      ++step_lines_;
    } else if (event == "eval") {
      ++evaluation_lines_;
    } else if (event == "start" || event == "resume") {
      starts_[number] = line.integer("from_step");
    }
  }
}

std::int64_t MetricsReader::replay(MetricSink& sink) {
  constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();
  // By the line of a start: up to which step what was before it counts, all later ones considered.
  std::map<std::int64_t, std::int64_t> limits;
  std::int64_t limit = all;
  std::int64_t new_run_line = 0;
  for (const auto& [number, from_step] : starts_ | std::views::reverse) {
    limit = limits[number] = std::min(limit, from_step);
    if (from_step <= 0) {
      new_run_line = std::max(new_run_line, number);
    }
  }
  MetricSink nobody;
  simdjson::dom::parser parser;
  lines_.rewind();
  std::int64_t damaged_lines = 0;
  std::string_view text;
  for (std::int64_t number = 0; lines_.next(text); ++number) {
    if (text.empty()) {
      continue;
    }
    const Line line(parser, text);
    const auto next_start = limits.upper_bound(number);
    MetricSink& counting = number < new_run_line ? nobody : sink;
    if (!line.is_object() ||
        !pass_on(line, next_start == limits.end() ? all : next_start->second, counting)) {
      ++damaged_lines;
    }
  }
  return damaged_lines + lines_.passed_over();
}

}  // namespace fourfold::telemetry
