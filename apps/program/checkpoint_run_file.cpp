// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/command_output.hpp>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace fourfold::program {
namespace {

/// Verbs lie in one folder, installed or not.
std::string ckpt_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "fourfold-ckpt";
}

/// What `fourfold ckpt` says before and in its error.
struct Complaint {
  std::string warnings;
  std::string error;
};
Complaint complaint_of(const std::string& errors) {
  static constexpr std::string_view mark = "fourfold ckpt: error: ";
  const std::size_t at = errors.starts_with(mark) ? 0 : errors.find("\n" + std::string(mark));
  if (at == std::string::npos) {
    return {errors, ""};
  }
  const std::size_t begin = at == 0 ? 0 : at + 1;
  const std::string error = errors.substr(begin + mark.size());
  return {errors.substr(0, begin), error.substr(0, error.find_last_not_of('\n') + 1)};
}

}  // namespace

std::string run_file_in_checkpoint(const std::string& path) {
  const auto output = output_of({ckpt_program(), "info", "--run-file", "--", path});
  const Complaint said = output ? complaint_of(output->errors) : Complaint{};
  log::write_stderr(said.warnings);
  if (output && output->is_answer()) {
    return output->text;
  }
  if (output && output->cut.empty() && !said.error.empty()) {
    throw UserError(static_cast<ExitCode>(output->code), said.error);
  }
  throw UserError(ExitCode::config,
                  format_message("checkpoint.resume = {}: its model cannot be read ({}); name a "
                                 "step that is there, or write [model] into the run file",
                                 path,
                                 output ? format_message("fourfold ckpt info {}", output->failure())
                                        : "there is no fourfold-ckpt beside this program"));
}

}  // namespace fourfold::program
