// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "send.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string_view>

namespace fourfold::submit {
namespace {

/// "SBATCH_MEM_PER_CPU" of "--mem-per-cpu=3G".
std::string variable_of(std::string_view option) {
  std::string name(option.substr(2, option.find('=') - 2));
  std::ranges::transform(name, name.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::toupper(c));
  });
  return "SBATCH_" + (name == "MEM" ? "MEM_PER_NODE" : name);
}

/// As job.bash has it: without zeros before it, and no longer than a job's arithmetic takes.
bool is_count(std::string_view text) {
  constexpr std::size_t most_digits = 9;
  return text.size() <= most_digits && (text == "0" || text.front() != '0') &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::vector<std::string> variables_in_the_way(const batch::Submission& submission) {
  // SBATCH_SIGNAL and the others are the user's to set: what they ask for stands in no line.
  std::vector<std::string> names{"FOURFOLD_CHAIN",
                                 "FOURFOLD_DEADLINE",
                                 "FOURFOLD_WARNING_S",
                                 "FOURFOLD_LINK",
                                 "FOURFOLD_NEXT",
                                 "FOURFOLD_PREVIOUS",
                                 "FOURFOLD_LAUNCH",
                                 "FOURFOLD_SCRIPT",
                                 "FOURFOLD_EXCLUDE",
                                 "FOURFOLD_NODES",
                                 "FOURFOLD_RESTARTS_INSIDE",
                                 "FOURFOLD_HELD_NODES",
                                 "FOURFOLD_TASKS_PER_NODE",
                                 "SBATCH_JOB_NAME",
                                 "SBATCH_OUTPUT",
                                 "SBATCH_OPEN_MODE",
                                 "SBATCH_REQUEUE",
                                 "SBATCH_NO_REQUEUE",
                                 "SBATCH_ARRAY_INX"};
  const auto add_if = [&](bool is_in_script, const char* name) {
    if (is_in_script) {
      names.emplace_back(name);
    }
  };
  add_if(submission.chain > 0, "SBATCH_WAIT");
  add_if(!submission.time.empty(), "SBATCH_TIMELIMIT");
  add_if(!submission.partition.empty(), "SBATCH_PARTITION");
  add_if(!submission.account.empty(), "SBATCH_ACCOUNT");
  for (const std::string& option : submission.more) {
    names.push_back(variable_of(option));
  }
  return names;
}

void refuse_wrong_variables() {
  struct Variable {
    const char* name;
    bool (*is_right)(std::string_view text);
    const char* what;
  };
  constexpr std::array<Variable, 3> variables{{
      {"FOURFOLD_MOST_STARTS", is_count, "a whole number"},
      {"FOURFOLD_STUCK_AFTER", is_count, "a whole number"},
      {"FOURFOLD_REQUEUE", [](std::string_view text) { return text == "0" || text == "1"; },
       "0 or 1"},
  }};
  for (const Variable& variable : variables) {
    const std::string text = environment_text(variable.name);
    if (!text.empty() && !variable.is_right(text)) {
      throw UserError(ExitCode::usage,
                      format_message("{}={} is not {} (the job would refuse it); correct it, or "
                                     "unset it",
                                     variable.name, text, variable.what));
    }
  }
}

void clear_the_way(const batch::Submission& submission) {
  std::vector<std::string> found;
  for (const std::string& name : variables_in_the_way(submission)) {
    if (std::getenv(name.c_str()) != nullptr) {  // also an empty one
      found.push_back(name);
      ::unsetenv(name.c_str());
    }
  }
  if (!found.empty()) {
    log::info(format_message("not handed on to the job, which they would change: {}",
                             fmt::join(found, ", ")));
  }
}

}  // namespace fourfold::submit
