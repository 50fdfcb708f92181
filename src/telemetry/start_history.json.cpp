// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "found_json.json.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/telemetry/start_history.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

namespace fourfold::telemetry {
namespace {

/// How the lines of which there are many begin as MetricsFile writes them. Of most only the time is
/// wanted, of the newest of each kind all: a run of a million steps is then looked at without a
/// wait.
constexpr std::array<std::string_view, 2> many_line_heads{R"({"event":"step","time":)",
                                                          R"({"event":"eval","time":)"};

std::optional<double> time_of_line(std::string_view line, std::string_view head) {
  if (!line.starts_with(head) || !line.ends_with('}')) {
    return std::nullopt;
  }
  constexpr double year_5000 = 1e11;
  double time_s = 0;
  const char* const begin = line.data() + head.size();
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), time_s);
  return error == std::errc{} && *end == ',' && time_s >= 1 && time_s <= year_5000
             ? std::optional(time_s)
             : std::nullopt;
}

int hosts_in(const Json& json) {
  std::set<std::string> hosts;
  const auto found = json.find("rank_hosts");
  if (found != json.end() && found->is_array()) {
    for (const Json& host : *found) {
      hosts.insert(host.is_string() ? host.get<std::string>() : std::string());
    }
  }
  return std::max(1, static_cast<int>(hosts.size()));
}

TrainerStart start_in(const Json& json, double time_s) {
  TrainerStart start;
  start.began_unix_s = time_s;
  start.from_step = count_in(json, "from_step").value_or(0);
  start.steps = count_in(json, "steps").value_or(0);
  start.nodes = hosts_in(json);
  start.checkpoint = text_in(json, "checkpoint");
  start.last_step = {start.from_step, time_s};
  start.last_word_unix_s = time_s;
  return start;
}

void note_word(double time_s, TrainerStart& start) {
  start.longest_silence_s = std::max(start.longest_silence_s, time_s - start.last_word_unix_s);
  start.last_word_unix_s = std::max(start.last_word_unix_s, time_s);
}

void note_step(const Json& json, double time_s, TrainerStart& start) {
  if (const auto step = count_in(json, "step")) {
    start.last_step = {*step, time_s};
    start.NewestStep::operator=(newest_step_in(json));
  }
}

void note(const std::string& event, const Json& json, double time_s, TrainerStart& start) {
  const std::optional<std::int64_t> step = count_in(json, "step");
  if (event == "step") {
    note_step(json, time_s, start);
  } else if (event == "eval") {
    start.validation_loss = number_in(json, "loss");
    start.validation_step = step;
  } else if (event == "checkpoint" && step) {
    start.saved.push_back({*step, time_s});
  } else if (event == "end" && exit_code_in(json, "code")) {
    start.end = {time_s, *exit_code_in(json, "code"), text_in(json, "reason")};
  }
}

}  // namespace

void StartHistory::add_line(std::string_view line) {
  for (std::size_t kind = 0; kind < many_line_heads.size(); ++kind) {
    if (const auto time_s = time_of_line(line, many_line_heads[kind])) {
      newest_lines_[kind] = line;
      if (!starts_.empty()) {
        note_word(*time_s, starts_.back());
      }
      return;
    }
  }
  const Json json = json_if_any<Json>(line);
  const std::string event = text_in(json, "event");
  const std::optional<double> time_s = time_in(json, "time");
  if (event.empty() || !time_s) {
    return;
  }
  read_newest_lines();
  if (event == "start" || event == "resume") {
    starts_.push_back(start_in(json, *time_s));
  } else if (!starts_.empty()) {
    note_word(*time_s, starts_.back());
    note(event, json, *time_s, starts_.back());
  }
}

void StartHistory::read_newest_lines() {
  for (std::string& line : newest_lines_) {
    const Json json = json_if_any<Json>(line);
    line.clear();
    if (const auto time_s = time_in(json, "time"); time_s && !starts_.empty()) {
      note(text_in(json, "event"), json, *time_s, starts_.back());
    }
  }
}

const std::vector<TrainerStart>& StartHistory::starts() {
  read_newest_lines();
  return starts_;
}

}  // namespace fourfold::telemetry
