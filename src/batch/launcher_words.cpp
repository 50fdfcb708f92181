// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/launcher_words.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <regex>
#include <sstream>
#include <string>
#include <system_error>

namespace fourfold::batch {
namespace {

/// Of one line, both in this order; one alone would not be enough where there are two.
using Words = std::array<std::string_view, 2>;

constexpr std::array unmendable_words{
    // srun --mpi=, and the plugins of the step
    Words{"Invalid MPI type"},
    Words{"Couldn't find the specified plugin"},
    Words{"Couldn't load specified plugin"},
    Words{"can not load PMIx library"},
    Words{"Plugin loading failed"},
    Words{"Plugin is corrupted"},
    // options
    Words{"unrecognized option"},
    Words{"invalid option"},
    Words{"unrecognized argument"},
    Words{"unrecognized --"},
    Words{"requires an argument"},
    Words{"Failed to parse"},
    Words{"Invalid numeric value"},
    Words{"Invalid --", "specification"},
    Words{"Invalid --", "argument"},
    Words{"invalid --", "option"},
    Words{"Invalid generic resource"},
    // what the job, or its user, may not have
    Words{"More processors requested than permitted"},
    Words{"Cannot request more threads per core"},
    Words{"Requested node configuration is not available"},
    Words{"Memory required by task is not available"},
    Words{"Invalid account"},
    Words{"nvalid partition"},
    Words{"Invalid qos"},
    // the program
    Words{"execve():", "No such file or directory"},
    Words{"execve():", "Permission denied"},
    Words{"execve():", "Exec format error"},
    Words{"execvp error on file", "No such file or directory"},
    Words{"execvp error on file", "Permission denied"},
    Words{"execvp error on file", "Exec format error"},
};

bool says(std::string_view line, const Words& words) {
  const std::size_t at = line.find(words[0]);
  return at != std::string_view::npos &&
         line.find(words[1], at + words[0].size()) != std::string_view::npos;
}

/// "srun: ", "slurmstepd-node1: ", "[mpiexec@node1] ", "[proxy:0:0@node1] ": what programs that are
/// started print does not begin so.
bool is_of_launcher(std::string_view line) {
  return line.starts_with("srun:") || line.starts_with("slurmstepd") ||
         line.starts_with("[mpiexec@") || line.starts_with("[proxy:");
}

/// The nodes that lines are of, each once.
void add_node(const std::string& node, std::vector<std::string>& nodes) {
  const auto at = std::ranges::lower_bound(nodes, node);
  if (!node.empty() && (at == nodes.end() || *at != node)) {
    nodes.insert(at, node);
  }
}

/// A number of bytes; nothing for more digits than one has.
std::optional<std::uint64_t> bytes_in(const std::string& digits) {
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  return error == std::errc{} ? std::optional(bytes) : std::nullopt;
}

/// Calls `take` with each line.
template <class Take>
void each_line(std::string_view text, const Take& take) {
  constexpr std::size_t longest = 2000;  // of a rank's that begins like one of these
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.size() <= longest) {
      take(line);
    }
  }
}

const std::string node_name = "([A-Za-z0-9][A-Za-z0-9._-]*)";

}  // namespace

std::optional<std::string> unmendable(std::string_view errors) {
  std::optional<std::string> found;
  std::istringstream lines{std::string(errors)};
  for (std::string line; std::getline(lines, line);) {
    if (is_of_launcher(line) && std::ranges::any_of(unmendable_words, [&](const Words& words) {
          return says(line, words);
        })) {
      found = line;  // the last one sums up
    }
  }
  return found;
}

std::optional<MemoryKill> killed_for_memory(std::string_view words) {
  static const std::regex counted("slurmstepd(?:-" + node_name +
                                  ")?: error: .*exceeded memory limit \\(([0-9]+) > ([0-9]+)\\).*");
  static const std::regex told("slurmstepd(?:-" + node_name +
                               ")?: error: (?:Detected [0-9]+ oom[-_]kill event|"
                               "Exceeded job memory limit).*");
  static const std::regex task("srun: error: " + node_name + ": tasks? [0-9,-]+: Out Of Memory");
  std::optional<MemoryKill> kill;
  std::vector<std::string> others;  // were ended with the one that took too much
  each_line(words, [&](const std::string& line) {
    std::smatch parts;
    if (std::regex_match(line, parts, counted)) {
      kill = kill.value_or(MemoryKill{});
      add_node(parts[1].str(), kill->nodes);
      kill->taken_bytes = bytes_in(parts[2].str());
      kill->limit_bytes = bytes_in(parts[3].str());
    } else if (std::regex_match(line, parts, task)) {
      kill = kill.value_or(MemoryKill{});
      add_node(parts[1].str(), kill->nodes);
    } else if (std::regex_match(line, parts, told)) {
      kill = kill.value_or(MemoryKill{});
      const bool is_count = line.find("Detected") != std::string::npos;
      add_node(parts[1].str(), is_count ? kill->nodes : others);
    }
  });
  if (kill && kill->nodes.empty()) {
    kill->nodes = others;
  }
  return kill;
}

bool tells_exit_code(std::string_view words, int code) {
  const std::regex ended("srun: error: " + node_name + ": tasks? [0-9,-]+: Exited with exit code " +
                         std::to_string(code));
  bool found = false;
  each_line(words,
            [&](const std::string& line) { found = found || std::regex_match(line, ended); });
  return found;
}

bool TaskEnd::is_failure() const {
  // 75 and what a signal for "end soon" ends, before it is listened to.
  static const std::regex told(
      "Terminated|User defined signal.*|Exited with exit code (0|75|138|140|143)");
  return !std::regex_match(how, told);
}

std::optional<TaskEnd> first_task_end(std::string_view words) {
  static const std::regex ended("srun: error: " + node_name + ": tasks? [0-9,-]+: (.*)");
  std::optional<TaskEnd> first;
  each_line(words, [&](const std::string& line) {
    std::smatch parts;
    if (!first && std::regex_match(line, parts, ended)) {
      first = TaskEnd{.node = parts[1].str(), .how = parts[2].str()};
    }
  });
  return first;
}

NotStarted not_started(std::string_view words) {
  static const std::regex ended("srun: error: " + node_name +
                                ": tasks? [0-9,-]+: Exited with exit code (2|13|126|127)");
  static const std::regex unreachable(
      "srun: error: Task launch for StepId=[0-9.+]+ failed on node " + node_name + ": (.*)");
  static const std::regex reason("slurmstepd(?:-" + node_name + ")?: error: (execve\\(\\): .*)");
  NotStarted found;
  each_line(words, [&](const std::string& line) {
    std::smatch parts;
    if (std::regex_match(line, parts, ended)) {
      add_node(parts[1].str(), found.nodes);
    } else if (std::regex_match(line, parts, unreachable) ||
               std::regex_match(line, parts, reason)) {
      add_node(parts[1].str(), found.nodes);
      found.why = parts[2].str();
    }
  });
  return found;
}

}  // namespace fourfold::batch
