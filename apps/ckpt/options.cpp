// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/train/load_run.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>

namespace fourfold::ckpt {

using program::add_checkpoint_option;
using program::add_progress_option;

namespace {

constexpr const char* compared = ", of which the newest step that holds together is taken";

}  // namespace

void describe_info(CLI::App& verb, Request& request) {
  add_checkpoint_option(verb, request.checkpoint, "; of several steps a list is shown");
  verb.add_flag("--tensors", request.tensors,
                "Show each tensor with its shape, digest and boxes, and the datasets they are in");
  verb.add_flag(
      "--run-file", request.run_file,
      "Print the run file in it (of the newest valid step of a folder), and nothing else");
  verb.add_flag("--json", request.json, "Print one JSON object, tensors and all");
}

void describe_verify(CLI::App& verb, Request& request) {
  add_checkpoint_option(verb, request.checkpoints,
                        ", of which all steps are taken; or several of these");
  verb.add_flag("--deep", request.deep,
                "Read every byte: checksums of all chunks and files, digests of all tensors");
  verb.add_flag("--json", request.json, "Print one JSON list");
  add_progress_option(verb, request.progress);
}

void describe_repair_index(CLI::App& verb, Request& request) {
  add_checkpoint_option(verb, request.checkpoint,
                        ", of which the newest step that does not hold together is taken");
  verb.add_flag(
      "--trust-payloads", request.trust_payloads,
      "Take the payloads' own checksums for enough where manifest and index are both lost and "
      "LATEST does not know the step: nothing shows then that they are of one save");
  verb.add_flag("--dry-run", request.dry_run, "Read and check all, change nothing");
  verb.add_flag("--json", request.json, "Print one JSON object");
  add_progress_option(verb, request.progress);
}

void describe_diff(CLI::App& verb, Request& request) {
  verb.add_option("A", request.checkpoint, std::string(program::checkpoint_meaning) + compared)
      ->required()
      ->type_name("");
  verb.add_option("B", request.other_checkpoint, "The same")->required()->type_name("");
  verb.add_flag("--digests-only", request.digests_only,
                "Only tell which tensors differ, which needs none of their bytes");
  verb.add_option("--largest", request.largest, "Elements to name of each tensor that differs")
      ->check(program::whole_number(0, 1000))
      ->capture_default_str();
  add_memory_option(verb, request.memory_bytes, 1, "For the parts that are read");
  verb.add_flag("--json", request.json, "Print one JSON object");
  add_progress_option(verb, request.progress);
}

void describe_reshard(CLI::App& verb, Request& request) {
  add_checkpoint_option(verb, request.checkpoint);
  verb.add_option("TO", request.to, "A folder of steps, in which the new one appears whole")
      ->required()
      ->check(program::place_to_write())
      ->type_name("");
  verb.add_option("--to", request.mesh,
                  "The mesh to cut for, as tp=2,pp=1,dp=8,zero=1: axes that are not named are 1, "
                  "other keys of [mesh] as in the run that saved")
      ->required()
      ->type_name("MESH");
  verb.add_option("--files", request.files,
                  "\"rank\": a payload file for each rank of the mesh that has something; or how "
                  "many its ranks share")
      ->check(CLI::IsMember({"rank"}) | program::whole_number(1, 999999))
      ->capture_default_str()
      ->type_name("FILES");
  add_memory_option(verb, request.memory_bytes, 96, "The most memory of each process");
  verb.add_flag("--dry-run", request.dry_run, "Only tell what would be written");
  verb.add_flag("--json", request.json, "Print one JSON object");
  add_progress_option(verb, request.progress);
}

void describe_gc(CLI::App& verb, Request& request) {
  add_checkpoint_option(verb, request.checkpoint, "; a single step is refused");
  CLI::Option* const last =
      verb.add_option("--keep-last", request.keep.keep_last,
                      "Remove steps but the newest ones, so many; without it all steps stay")
          ->check(program::whole_number(1, 1'000'000))
          ->type_name("K");
  verb.add_option("--keep-every", request.keep.keep_every_steps, "Keep multiples of M too")
      ->check(program::whole_number(1, 1'000'000'000))
      ->needs(last)
      ->type_name("M");
  verb.add_option("--keep-best", request.keep.keep_best,
                  "Keep so many of the lowest validation loss too, of those that note one")
      ->check(program::whole_number(1, 1'000'000))
      ->needs(last)
      ->type_name("B");
  verb.add_flag("--set-aside", request.set_aside,
                "Remove damaged steps that were set aside (damaged-step-...) too");
  verb.add_flag("--dry-run", request.dry_run, "Only tell what would be removed");
  verb.add_flag("--json", request.json, "Print one JSON object");
  add_progress_option(verb, request.progress);
}

void describe_merge(CLI::App& verb, Request& request) {
  add_checkpoint_option(verb, request.checkpoint);
  verb.add_option("FILE", request.to, "The HDF5 file that is made, with each tensor whole")
      ->required()
      ->check(program::place_to_write())
      ->type_name("");
  add_memory_option(verb, request.memory_bytes, 1, "For the rows that are copied at a time");
  verb.add_flag("--dry-run", request.dry_run, "Only tell what would be written");
  verb.add_flag("--json", request.json, "Print one JSON object");
  add_progress_option(verb, request.progress);
}

std::string rate_text(std::int64_t bytes, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
  return telemetry::bytes_text(static_cast<std::int64_t>(rate)) + "/s";
}

io::Checkpoint open(const std::string& path) {
  std::optional<io::Checkpoint> checkpoint;
  comm::run_ranks(
      1, [&](comm::Communicator& self) { checkpoint = train::open_named_checkpoint(path, self); });
  return *checkpoint;
}

void refuse_directory_of_run(const std::string& to) {
  if (telemetry::holds_run(to) && io::list_steps(to).empty()) {
    throw UserError(
        ExitCode::config,
        format_message("{}: is the directory of a run (a step in it would be taken for the run's, "
                       "whose checkpoints are elsewhere); name another folder",
                       to));
  }
}

namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;
constexpr std::int64_t most_mib = std::int64_t{1} << 24;

/// Binary units; whole MiB.
std::optional<std::int64_t> mib_of(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, number);
  const std::string unit(rest, end);
  if (failure != std::errc() || number < 0 || number > most_mib) {
    return std::nullopt;
  }
  if (unit.empty() || unit == "M" || unit == "MiB") {
    return number;
  }
  return unit == "G" || unit == "GiB" ? std::optional(number * 1024) : std::nullopt;
}

}  // namespace

void add_memory_option(CLI::App& verb, std::int64_t& bytes, std::int64_t least_mib,
                       const char* meaning) {
  verb.add_option_function<std::string>(
          "--memory", [&bytes](const std::string& text) { bytes = *mib_of(text) * mib; }, meaning)
      ->check([least_mib](const std::string& text) {
        const auto wanted = mib_of(text);
        return wanted && *wanted >= least_mib
                   ? std::string()
                   : fmt::format("{} is no size from {}M on, like 256M or 2G", text, least_mib);
      })
      ->default_str(fmt::format("{}M", bytes / mib))
      ->type_name("SIZE");
}

}  // namespace fourfold::ckpt
