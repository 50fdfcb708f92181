// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "slurm_answers.hpp"

#include <fourfold/base/process_identity.hpp>
#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/program/command_output.hpp>

#include <algorithm>
#include <chrono>
#include <thread>

namespace fourfold::job {

std::optional<batch::AccountedStart> ask_accounting(const batch::Attempt& attempt) {
  if (BatchJob::of_this_process().id.empty()) {
    return std::nullopt;
  }
  constexpr std::chrono::milliseconds pause{500};  // a step's records come after about a second
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  std::optional<batch::AccountedStart> start;
  do {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        until - std::chrono::steady_clock::now());
    const auto answer = program::ask_slurm(batch::accounting_command(attempt.start.id), left);
    if (!answer || !answer->is_answer()) {
      return start;
    }
    start = batch::accounted_start(answer->text, attempt);
    if (!start || !start->is_under_way(attempt)) {
      return start;
    }
    std::this_thread::sleep_for(pause);
  } while (std::chrono::steady_clock::now() < until);
  return start;
}

std::vector<batch::AccountedStart> ask_job_spans(std::vector<std::string> jobs) {
  std::erase_if(jobs, [](const std::string& job) {
    return job.empty() || job.find_first_not_of("0123456789") != std::string::npos;
  });
  if (BatchJob::of_this_process().id.empty() || jobs.empty()) {
    return {};
  }
  const auto answer = program::ask_slurm(batch::job_spans_command(jobs), std::chrono::seconds(5));
  return answer && answer->is_answer() ? batch::job_spans(answer->text)
                                       : std::vector<batch::AccountedStart>{};
}

bool is_own_node(const std::string& host) {
  const std::string nodes = environment_text("SLURM_JOB_NODELIST");
  if (nodes.empty()) {
    return true;
  }
  const auto answer = program::ask_slurm(batch::hostnames_command(nodes), std::chrono::seconds(5));
  const auto names = answer && answer->is_answer() ? batch::hostnames_of(answer->text)
                                                   : std::vector<std::string>{};
  const auto without_domain = [](const std::string& name) {
    return name.substr(0, name.find('.'));
  };
  return names.empty() || std::ranges::any_of(names, [&](const std::string& name) {
           return without_domain(name) == without_domain(host);
         });
}

}  // namespace fourfold::job
