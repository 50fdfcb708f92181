// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_option.hpp"
#include "verbs.hpp"

#include <fourfold/program/byte_progress.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

namespace {

using fourfold::ExitCode;
using fourfold::ckpt::add_memory_option;
using fourfold::ckpt::DiffRequest;
using fourfold::ckpt::ExportRequest;
using fourfold::ckpt::ImportRequest;
using fourfold::ckpt::InfoRequest;
using fourfold::ckpt::MergeRequest;
using fourfold::ckpt::ReshardRequest;
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
  add_memory_option(verb, request.memory_bytes, 1, "For the parts that are read");
  verb.add_flag("--json", request.json, "Print one JSON object");
  add_progress_option(verb, request.progress);
}

void describe_reshard(CLI::App& verb, ReshardRequest& request) {
  verb.add_option("FROM", request.from, path_meaning)->required()->type_name("");
  verb.add_option("TO", request.to, "A folder of steps, in which the new one appears whole")
      ->required()
      ->type_name("");
  verb.add_option("--to", request.mesh,
                  "The mesh to cut for, as tp=2,pp=1,dp=8,zero=1: axes that are not named are 1, "
                  "other keys of [mesh] as in the run that saved")
      ->required()
      ->type_name("MESH");
  verb.add_option(
          "--files", request.files,
          "\"rank\": a payload file for each rank of the mesh that has something; or how many "
          "its ranks share")
      ->check(CLI::IsMember({"rank"}) | CLI::Range(1, 999999))
      ->capture_default_str()
      ->type_name("FILES");
  add_memory_option(verb, request.memory_bytes, 96, "The most memory of each process");
  verb.add_flag("--dry-run", request.dry_run, "Only tell what would be written");
  add_progress_option(verb, request.progress);
}

void describe_merge(CLI::App& verb, MergeRequest& request) {
  verb.add_option("FROM", request.from, path_meaning)->required()->type_name("");
  verb.add_option("FILE", request.file, "The HDF5 file that is made, with each tensor whole")
      ->required()
      ->type_name("");
  add_memory_option(verb, request.memory_bytes, 1, "For the rows that are copied at a time");
  verb.add_flag("--dry-run", request.dry_run, "Only tell what would be written");
  add_progress_option(verb, request.progress);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Looks at checkpoints and cuts them anew, on any machine: it needs neither ranks nor a "
      "device "
      "nor the run file.",
      "fourfold ckpt"};
  command.require_subcommand(1);
  InfoRequest info_request;
  VerifyRequest verify_request;
  DiffRequest diff_request;
  ReshardRequest reshard_request;
  MergeRequest merge_request;
  ExportRequest export_request;
  ImportRequest import_request;
  CLI::App* const info = command.add_subcommand("info", "Show what a checkpoint holds, and where");
  CLI::App* const verify =
      command.add_subcommand("verify", "Check whether checkpoints are whole; name what is damaged");
  CLI::App* const diff = command.add_subcommand(
      "diff", "Compare two checkpoints, also of different meshes, tensor by tensor");
  CLI::App* const reshard = command.add_subcommand(
      "reshard", "Cut a checkpoint for another mesh, bit for bit; also under mpiexec");
  CLI::App* const merge =
      command.add_subcommand("merge", "Make one HDF5 file of it, with each tensor whole");
  CLI::App* const export_verb = command.add_subcommand(
      "export", "Write the weights for other programs: Hugging Face transformers, llm.c");
  CLI::App* const import_verb =
      command.add_subcommand("import", "Make a checkpoint of the weights of other programs");
  describe_info(*info, info_request);
  describe_verify(*verify, verify_request);
  describe_diff(*diff, diff_request);
  describe_reshard(*reshard, reshard_request);
  describe_merge(*merge, merge_request);
  fourfold::ckpt::describe_export(*export_verb, export_request);
  fourfold::ckpt::describe_import(*import_verb, import_request);
  const std::string codes = "\nEXIT CODES\n" + fourfold::program::exit_codes_table(
                                                   {ExitCode::differs, ExitCode::data_corrupt,
                                                    ExitCode::cannot_write, ExitCode::config});
  for (CLI::App* const part :
       {&command, info, verify, diff, reshard, merge, export_verb, import_verb}) {
    part->footer(codes);
  }
  return fourfold::program::run("fourfold ckpt", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return info->parsed()          ? fourfold::ckpt::info(info_request)
           : verify->parsed()      ? fourfold::ckpt::verify(verify_request)
           : diff->parsed()        ? fourfold::ckpt::diff(diff_request)
           : reshard->parsed()     ? fourfold::ckpt::reshard(reshard_request)
           : merge->parsed()       ? fourfold::ckpt::merge(merge_request)
           : export_verb->parsed() ? fourfold::ckpt::export_model(export_request)
                                   : fourfold::ckpt::import_model(import_request);
  });
}
