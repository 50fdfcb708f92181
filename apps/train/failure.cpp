// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "training.hpp"

#include <fourfold/base/process_identity.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace fourfold::train_program {

void note_failure(const Arguments& arguments, std::optional<RunDirectory>& directory, ExitCode code,
                  const std::string& message) {
  const RankIdentity& self = rank_identity();
  if (arguments.print_config || (self.rank != 0 && self.end_all_ranks == nullptr)) {
    return;  // not a run; or one of several that all fail for the same reason
  }
  if (!directory) {
    runfile::EffectiveConfig refused;
    try {
      refused.config.log.dir = runfile::log_dir_of(arguments.run_file, arguments.overrides);
    } catch (const Error&) {
      return;  // nobody knows where log.dir is
    }
    const telemetry::ExitRecord told =
        telemetry::read_exit(telemetry::RunFiles(refused.config.log.dir).exit_status());
    if (told.end && told.is_of(BatchJob::of_this_process()) && told.end->code == code &&
        told.end->reason == message) {
      return;  // with the nodes that it blames
    }
    directory.emplace(refused, self.rank, arguments.dry_run);
  }
  directory->fail(code, message);
}

void note_wrong_command_line(Arguments arguments, const std::vector<std::string>& words) {
  if (comm::launched_rank() != 0) {
    return;
  }
  if (arguments.run_file.empty()) {
    std::error_code ignored;
    const auto file = std::ranges::find_if(words, [&](const std::string& word) {
      return std::filesystem::is_regular_file(word, ignored);
    });
    arguments.run_file = file == words.end() ? "" : *file;
  }
  std::optional<RunDirectory> directory;
  note_failure(arguments, directory, ExitCode::usage,
               "wrong command line: the job's log says which word");
}

}  // namespace fourfold::train_program
