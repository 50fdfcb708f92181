// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/program/checkpoint_run_file.hpp>
#include <fourfold/program/command_output.hpp>

#include <filesystem>
#include <system_error>

namespace fourfold::program {
namespace {

/// Verbs lie in one folder, installed or not.
std::string ckpt_program() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path() / "fourfold-ckpt";
}

}  // namespace

std::string run_file_in_checkpoint(const std::string& path, const std::string& or_else) {
  const auto ask = [](const std::string& folder) {
    return output_of({ckpt_program(), "info", "--run-file", "--", folder});
  };
  const auto output = ask(path);
  if (output && output->code == 0) {
    return output->text;
  }
  if (const auto other = ask(or_else); other && other->code == 0) {
    return other->text;
  }
  throw UserError(
      ExitCode::config,
      format_message("checkpoint.resume = {}: its model cannot be read ({}); name a step "
                     "that is there, or write [model] into the run file",
                     path,
                     output ? format_message("fourfold ckpt info ended with code {}", output->code)
                            : "there is no fourfold-ckpt beside this program"));
}

}  // namespace fourfold::program
