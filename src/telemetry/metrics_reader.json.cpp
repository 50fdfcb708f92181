// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/telemetry/metrics_file.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>

namespace fourfold::telemetry {
namespace {

using Json = nlohmann::ordered_json;

/// A line as a person may have damaged it: every look-up has an answer.
class Line {
 public:
  explicit Line(std::string_view text) : json_(json_if_any<Json>(text)) {}

  bool is_object() const { return json_.is_object(); }
  std::string text(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
  }
  /// NaN for null, which is how numbers that are not finite are written; 0 when absent.
  double number(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) {
      return 0;
    }
    return value->is_number() ? value->get<double>() : std::numeric_limits<double>::quiet_NaN();
  }
  std::int64_t integer(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_number_integer() ? value->get<std::int64_t>() : 0;
  }
  std::vector<std::string> texts(const char* key) const {
    std::vector<std::string> result;
    for (const Json& element : list(key)) {
      result.push_back(element.is_string() ? element.get<std::string>() : "?");
    }
    return result;
  }
  std::vector<std::pair<std::string, std::string>> pairs(const char* key) const {
    std::vector<std::pair<std::string, std::string>> result;
    for (const Json& element : list(key)) {
      if (element.is_array() && element.size() == 2 && element[0].is_string() &&
          element[1].is_string()) {
        result.emplace_back(element[0], element[1]);
      }
    }
    return result;
  }

  std::vector<std::pair<std::string, std::int64_t>> integers(const char* key) const {
    std::vector<std::pair<std::string, std::int64_t>> result;
    const Json* value = find(key);
    if (value != nullptr && value->is_object()) {
      for (const auto& [name, element] : value->items()) {
        result.emplace_back(name, element.is_number_integer() ? element.get<std::int64_t>() : 0);
      }
    }
    return result;
  }

 private:
  const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() ? nullptr : &*found;
  }
  Json list(const char* key) const {
    const Json* value = find(key);
    return value != nullptr && value->is_array() ? *value : Json::array();
  }

  Json json_;
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

/// Forgets what a restart from `step` does again.
template <class Record>
void forget_after(std::int64_t step, std::vector<Timed<Record>>& records) {
  std::erase_if(records, [=](const Timed<Record>& each) { return each.record.step > step; });
}

void add_start(const Line& line, double time_s, RunHistory& history) {
  const RunStart run = start_of(line);
  if (run.first_step <= 0) {
    const std::int64_t damaged_lines = history.damaged_lines;
    history = {};
    history.damaged_lines = damaged_lines;
  }
  forget_after(run.first_step, history.steps);
  forget_after(run.first_step, history.evaluations);
  forget_after(run.first_step, history.checkpoints);
  history.end.reset();
  history.starts.push_back({run, time_s});
}

/// @return whether the line was understood; unknown events of later versions are
bool add_line(std::string_view text, RunHistory& history) {
  const Line line(text);
  if (!line.is_object()) {
    return false;
  }
  const std::string event = line.text("event");
  const double time_s = line.number("time");
  const std::int64_t step = line.integer("step");
  if (event == "start" || event == "resume") {
    add_start(line, time_s, history);
  } else if (event == "step") {
    history.steps.push_back(
        {{step, line.number("loss"), line.number("grad_norm"), line.number("lr"),
          line.integer("tokens"), line.number("step_s"), line.number("tokens_per_s"),
          line.number("data_s"), line.number("loss_scale"), line.integer("skipped_steps"),
          line.number("mfu"), line.integer("device_used_bytes"),
          line.integer("device_total_bytes")},
         time_s});
  } else if (event == "eval") {
    history.evaluations.push_back(
        {{step, line.number("loss"), line.integer("tokens"), line.number("eval_s")}, time_s});
  } else if (event == "checkpoint") {
    history.checkpoints.push_back({{step, line.text("path"), line.integer("bytes"),
                                    line.number("save_s"), line.number("committed_s")},
                                   time_s});
  } else if (event == "memory") {
    history.memory = {{step, static_cast<int>(line.integer("rank")), line.integers("planned_bytes"),
                       line.integer("taken_bytes"), line.integer("device_used_bytes"),
                       line.integer("device_total_bytes")},
                      time_s};
  } else if (event == "end") {
    history.end = {{step, static_cast<int>(line.integer("code")), line.text("reason")}, time_s};
  }
  return !event.empty();
}

}  // namespace

RunHistory parse_metrics(std::string_view text) {
  RunHistory history;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && !add_line(line, history)) {
      ++history.damaged_lines;
    }
  }
  return history;
}

RunHistory read_metrics(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in.is_open()) {
    throw UserError(ExitCode::config,
                    fmt::format("cannot read {} ({}) is this the log.dir of a run?", file.string(),
                                std::generic_category().message(errno)));
  }
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  return parse_metrics(text);
}

}  // namespace fourfold::telemetry
