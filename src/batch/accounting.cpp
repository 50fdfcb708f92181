// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "slurm_lines.hpp"

#include <fourfold/batch/accounting.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
#include <system_error>

namespace fourfold::batch {

namespace {

/// As accounting_command() asks for them.
enum Field : std::uint8_t {
  job_id,
  state,
  began,
  ended,
  largest,
  node_of_largest,
  nodes,
  name,
  field_count
};
using Fields = std::array<std::string_view, field_count>;

/// The last one, a name that its user has given, may have any character.
std::optional<Fields> fields_of(std::string_view line) {
  Fields fields;
  for (std::size_t i = 0; i + 1 < field_count; ++i) {
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos) {
      return std::nullopt;
    }
    fields[i] = line.substr(0, bar);
    line.remove_prefix(bar + 1);
  }
  fields.back() = line;
  return fields;
}

/// Nothing for what is no number ("Unknown", empty).
std::optional<std::uint64_t> number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc{} && end == digits.data() + digits.size() && !digits.empty()
             ? std::optional(value)
             : std::nullopt;
}

std::optional<double> seconds(std::string_view digits) {
  const auto value = number(digits);
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

int nodes_in(std::string_view digits) {
  constexpr std::uint64_t most_nodes = 1'000'000;
  return static_cast<int>(std::clamp<std::uint64_t>(number(digits).value_or(1), 1, most_nodes));
}

/// What srun starts has a number.
bool is_numbered(const AccountedStep& step) {
  return number(step.name).has_value();
}

/// The accounts know whole seconds, by the clock of another machine.
constexpr double clocks_differ_s = 2;

/// Whether srun started it for this launch, and not for one before.
bool is_of(const AccountedStep& step, const Attempt& attempt) {
  return is_numbered(step) && step.began_unix_s >= attempt.began_unix_s - clocks_differ_s;
}

}  // namespace

bool AccountedStart::is_under_way(const Attempt& attempt) const {
  return std::ranges::any_of(steps, [&](const AccountedStep& step) {
    return is_of(step, attempt) && step.state == "RUNNING" && step.called != "fourfold-guard";
  });
}

std::vector<std::string> accounting_command(const std::string& job) {
  return {"env",
          "SLURM_TIME_FORMAT=%s",
          "sacct",
          "--duplicates",
          "--noheader",
          "--parsable2",
          "--noconvert",
          "--jobs=" + job,
          "--format=JobIDRaw,State,Start,End,MaxRSS,MaxRSSNode,NNodes,JobName"};
}

std::optional<AccountedStart> accounted_start(std::string_view text, const Attempt& attempt) {
  std::optional<AccountedStart> found;
  double found_began_s = 0;
  bool is_in_it = false;  // the steps of a start follow it
  for (const auto part : std::views::split(text, '\n')) {
    const auto fields = fields_of(std::string_view(part.begin(), part.end()));
    if (!fields || !(*fields)[job_id].starts_with(attempt.start.id)) {
      continue;
    }
    const std::string_view rest = (*fields)[job_id].substr(attempt.start.id.size());
    const double began_s = seconds((*fields)[began]).value_or(0);
    if (rest.empty()) {
      // A job that has lost a node, and goes on, has another line from then on.
      if (found && found->state == "RESIZING" && found->ended_unix_s == began_s) {
        found->state = (*fields)[state];
        found->ended_unix_s = seconds((*fields)[ended]);
        found->nodes = nodes_in((*fields)[nodes]);
        is_in_it = true;
        continue;
      }
      is_in_it = began_s >= found_began_s && began_s > 0 &&
                 began_s <= attempt.began_unix_s + clocks_differ_s;
      if (is_in_it) {
        found_began_s = began_s;
        found = {.state = std::string((*fields)[state]),
                 .began_unix_s = began_s,
                 .ended_unix_s = seconds((*fields)[ended]),
                 .nodes = nodes_in((*fields)[nodes])};
      }
    } else if (rest.starts_with('.') && is_in_it) {
      found->steps.push_back({.name = std::string(rest.substr(1)),
                              .called = std::string((*fields)[name]),
                              .state = std::string((*fields)[state]),
                              .began_unix_s = began_s,
                              .largest_task_bytes = number((*fields)[largest]),
                              .node_of_largest = std::string((*fields)[node_of_largest])});
    }
  }
  return found;
}

std::optional<MemoryKill> killed_for_memory(const AccountedStart& start, const Attempt& attempt) {
  std::optional<MemoryKill> kill;
  for (const AccountedStep& step : start.steps) {
    if (is_of(step, attempt) && step.state == "OUT_OF_MEMORY") {
      kill = MemoryKill{.largest_task_bytes = step.largest_task_bytes};
      if (!step.node_of_largest.empty()) {
        kill->nodes = {step.node_of_largest};
      }
    }
  }
  return kill;
}

namespace {

/// What such a job's end stands for is its time limit.
bool goes_on(std::string_view state) {
  constexpr std::array<std::string_view, 5> states{"RUNNING", "SUSPENDED", "STOPPED", "CONFIGURING",
                                                   "RESIZING"};
  return std::ranges::count(states, state) > 0;
}

}  // namespace

std::vector<std::string> job_spans_command(std::span<const std::string> jobs) {
  return {"env",
          "SLURM_TIME_FORMAT=%s",
          "squeue",
          "--noheader",
          "--states=all",
          fmt::format("--jobs={}", fmt::join(jobs, ",")),
          "--format=%A|%T|%S|%e|%D|%N"};
}

std::vector<AccountedStart> job_spans(std::string_view text) {
  // Without the names of nodes it waits, or was cancelled while it did.
  static const std::regex form(R"((\d+)\|([A-Z_]+)\|(\d+)\|(\d*)[^|]*\|(\d+)\|[^|\s]+)");
  std::vector<AccountedStart> spans;
  for (const auto& line : lines_of_form(text, form)) {
    AccountedStart span{.job = line[1],
                        .state = line[2],
                        .began_unix_s = static_cast<double>(number_of(line[3])),
                        .nodes = nodes_in(line[5])};
    if (!line[4].empty() && !goes_on(span.state)) {
      span.ended_unix_s = number_of(line[4]);
    }
    spans.push_back(std::move(span));
  }
  return spans;
}

}  // namespace fourfold::batch
