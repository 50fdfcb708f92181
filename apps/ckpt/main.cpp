// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/program/byte_progress.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

namespace {

using fourfold::ExitCode;
using fourfold::ckpt::DiffRequest;
using fourfold::ckpt::InfoRequest;
using fourfold::ckpt::VerifyRequest;
using fourfold::program::add_progress_option;

const char* const path_meaning =
    "A step folder (step-NNNNNNNNN), or a folder of steps, of which the newest valid one is taken";

void describe_info(CLI::App& verb, InfoRequest& request) {
  verb.add_option("PATH", request.path, "A step folder, or a folder of steps, which are listed")
      ->required()
      ->type_name("");
  verb.add_flag("--tensors", request.tensors,
                "Show each tensor with its shape, digest and boxes, and the datasets they are in");
  verb.add_flag("--json", request.json, "Print one JSON object, tensors and all");
}

void describe_verify(CLI::App& verb, VerifyRequest& request) {
  verb.add_option("PATH", request.paths,
                  "Step folders, or folders of steps, of which all are taken")
      ->required()
      ->type_name("");
  verb.add_flag("--deep", request.deep,
                "Read every byte: checksums of all chunks and files, digests of all tensors");
  verb.add_flag("--json", request.json, "Print one JSON list");
  add_progress_option(verb, request.progress);
}

void describe_diff(CLI::App& verb, DiffRequest& request) {
  verb.add_option("A", request.a, path_meaning)->required()->type_name("");
  verb.add_option("B", request.b, "The same")->required()->type_name("");
  verb.add_flag("--digests-only", request.digests_only,
                "Only tell which tensors differ, which needs none of their bytes");
  verb.add_option("--largest", request.largest, "Elements to name of each tensor that differs")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  verb.add_option("--memory", request.memory_mib, "MiB for the parts that are read")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->type_name("MIB");
  verb.add_flag("--json", request.json, "Print one JSON object");
  add_progress_option(verb, request.progress);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Looks at checkpoints, on any machine: it needs neither ranks nor a device nor the run file.",
      "fourfold ckpt"};
  command.require_subcommand(1);
  InfoRequest info_request;
  VerifyRequest verify_request;
  DiffRequest diff_request;
  CLI::App* const info = command.add_subcommand("info", "Show what a checkpoint holds, and where");
  CLI::App* const verify =
      command.add_subcommand("verify", "Check whether checkpoints are whole; name what is damaged");
  CLI::App* const diff = command.add_subcommand(
      "diff", "Compare two checkpoints, also of different meshes, tensor by tensor");
  describe_info(*info, info_request);
  describe_verify(*verify, verify_request);
  describe_diff(*diff, diff_request);
  const std::string codes =
      "\nEXIT CODES\n" + fourfold::program::exit_codes_table(
                             {ExitCode::differs, ExitCode::data_corrupt, ExitCode::config});
  for (CLI::App* const part : {&command, info, verify, diff}) {
    part->footer(codes);
  }
  return fourfold::program::run("fourfold ckpt", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return info->parsed()     ? fourfold::ckpt::info(info_request)
           : verify->parsed() ? fourfold::ckpt::verify(verify_request)
                              : fourfold::ckpt::diff(diff_request);
  });
}
