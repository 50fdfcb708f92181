// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "send.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sstream>
#include <string_view>

extern char** environ;

namespace fourfold::submit {
namespace {

/// As the batch scripts ask.
std::chrono::seconds to_ask() {
  constexpr int usual = 60;
  constexpr int longest = 3600;
  int seconds = usual;
  const std::string text = environment_text("FOURFOLD_ASK_S");
  std::from_chars(text.data(), text.data() + text.size(), seconds);
  return std::chrono::seconds(std::clamp(seconds, 1, longest));
}

/// What it says beside its answer.
void tell_errors(const std::string& program, const std::string& errors) {
  std::istringstream lines(errors);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) {
      log::warning(line.starts_with(program + ":") ? line
                                                   : format_message("{}: {}", program, line));
    }
  }
}

/// Of an answer of several lines, one.
std::string without_line_ends(std::string text) {
  text.erase(text.find_last_not_of(" \r\n") + 1);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

std::optional<program::CommandOutput> ask(const std::vector<std::string>& command) {
  return program::ask_slurm(command, to_ask());
}

batch::SubmittedJob submit_script(const std::filesystem::path& script, const std::string& name) {
  const auto sbatch =
      program::output_of({"sbatch", "--parsable", script.string()}, {.time = 5 * to_ask()});
  if (!sbatch) {
    throw UserError(ExitCode::config,
                    format_message("there is no sbatch in PATH (Slurm is not here, or its module "
                                   "is not loaded); submit the script, {}, where Slurm is",
                                   script.string()));
  }
  const bool has_failed = sbatch->cut.empty() && sbatch->code != 0;
  if (has_failed && !batch::may_be_submitted(sbatch->errors)) {
    throw UserError(ExitCode::config,
                    format_message("sbatch refuses {} ({}); change the option that it means, as "
                                   "--time, --partition or --sbatch, and submit again",
                                   script.string(),
                                   without_line_ends(sbatch->errors.empty() ? sbatch->failure()
                                                                            : sbatch->errors)));
  }
  tell_errors("sbatch", sbatch->errors);
  const auto job = sbatch->is_answer() ? batch::submitted_job(sbatch->text) : std::nullopt;
  if (!job) {
    throw MaybeSubmitted(
        format_message("sbatch {}, so whether {} is in the queue is not known; look with `squeue "
                       "--me --name={}` before you submit it again",
                       has_failed            ? "did not get Slurm's answer"
                       : sbatch->cut.empty() ? "has not said which job it has made"
                                             : sbatch->cut,
                       script.string(), name));
  }
  return *job;
}

}  // namespace fourfold::submit
