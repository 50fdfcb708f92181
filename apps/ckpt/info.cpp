// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/saved_model.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace fourfold::ckpt {
namespace {

using telemetry::bytes_text;

/// "3 exp_avg, 3 master", and what they take.
std::string states_text(const io::Checkpoint& checkpoint) {
  std::map<std::string_view, int> counts;
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    ++counts[tensor.id.state.name()];
  }
  std::vector<std::string> parts;
  for (const auto& [state, count] : counts) {
    parts.push_back(fmt::format("{} {}", count, state));
  }
  return fmt::format("{}; {}", fmt::join(parts, ", "), bytes_text(io::payload_bytes(checkpoint)));
}

void print_scalars(const io::CheckpointScalars& scalars) {
  for (const auto& [name, value] : scalars.integers) {
    program::print("  {:<24}  {}\n", name, value);
  }
  for (const auto& [name, value] : scalars.reals) {
    program::print("  {:<24}  {}\n", name, value);
  }
  for (const auto& [name, text] : scalars.texts) {
    program::print("  {:<24}  {} characters\n", name, text.size());
  }
}

void print_tensors(const io::Checkpoint& checkpoint) {
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    program::print("\n{}  {} {}  {}  digest {}\n", tensor.id.str(), name(tensor.dtype),
                   tensor.shape.str(), bytes_text(io::payload_bytes(tensor)), tensor.digest.str());
    for (const io::StoredBox& box : io::boxes_of(checkpoint, tensor)) {
      program::print("  {}  {}{}\n", box.box.str(), box.file, box.dataset);
    }
  }
}

void print_checkpoint(const io::Checkpoint& checkpoint, bool tensors) {
  program::print("{}\n", checkpoint.path().string());
  program::print("step      {}, saved on mesh {}\n", checkpoint.step(), checkpoint.mesh().str());
  program::print("identity  {}\n", checkpoint.identity());
  program::print("tensors   {}: {}\n", checkpoint.tensors().size(), states_text(checkpoint));
  const auto files = io::files_of(checkpoint);
  std::uint64_t largest = 0;
  for (const io::StoredFile& file : files) {
    largest = std::max(largest, file.bytes);
  }
  program::print("files     {} with tensors, the largest {}\n", files.size(), bytes_text(largest));
  program::print("state beside tensors\n");
  print_scalars(checkpoint.scalars());
  if (tensors) {
    print_tensors(checkpoint);
  }
}

/// The steps of a folder that hold together, oldest first; the others are warned of.
std::vector<io::Checkpoint> steps_of(const std::filesystem::path& directory) {
  std::vector<io::Checkpoint> steps;
  comm::run_ranks(1, [&](comm::Communicator& self) {
    std::optional<io::Checkpoint> step = io::find_newest_valid(directory, self);
    while (step) {
      steps.push_back(*step);
      step = io::find_newest_valid(directory, self, step->step());
    }
  });
  std::ranges::reverse(steps);
  return steps;
}

void print_steps(const std::vector<io::Checkpoint>& steps) {
  program::print("{:>10}  {:<20}  {:>9}  {:>5}  identity\n", "step", "saved on mesh", "tensors",
                 "files");
  for (const io::Checkpoint& step : steps) {
    program::print("{:>10}  {:<20}  {:>9}  {:>5}  {}\n", step.step(), step.mesh().str(),
                   bytes_text(io::payload_bytes(step)), io::files_of(step).size(), step.identity());
  }
}

}  // namespace

ExitCode info(const Request& request) {
  if (request.run_file) {
    const io::Checkpoint checkpoint = open(request.checkpoint);
    program::print_text(runfile::print_run_config(runfile::explained(
        train::saved_config(checkpoint), checkpoint.path().filename().string())));
    return ExitCode::finished;
  }
  const std::filesystem::path named = train::checkpoints_named(request.checkpoint);
  if (io::list_steps(named).empty()) {
    const io::Checkpoint checkpoint = open(request.checkpoint);
    if (request.json) {
      program::print_text(info_json(checkpoint) + "\n");
    } else {
      print_checkpoint(checkpoint, request.tensors);
    }
    return ExitCode::finished;
  }
  const std::vector<io::Checkpoint> steps = steps_of(named);
  if (steps.empty()) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: no step there holds together (each is named above with the "
                                   "reason); restore one from a copy",
                                   named.string()));
  }
  if (request.json) {
    program::print_text(steps_json(named, steps) + "\n");
  } else {
    print_steps(steps);
  }
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
