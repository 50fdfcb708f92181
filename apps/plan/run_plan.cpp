// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/state_layouts.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ranges>

namespace fourfold::plan_program {
namespace {

/// @param ranks  0: as many as the degrees make
train::ResolvedRun resolved(const runfile::EffectiveConfig& effective, std::int64_t ranks) {
  const comm::MeshShape& wanted = effective.config.mesh.shape;
  if (ranks == 0 && wanted.dp == 0) {
    throw UserError(ExitCode::usage,
                    "how many ranks there will be is not known (mesh.dp is \"auto\": what the "
                    "other axes leave); give --ranks (--rank shows one of them), or set mesh.dp");
  }
  return train::resolve_run(effective, ranks == 0 ? wanted.ranks() : ranks);
}

/// What does not fit the device is told with its place in the run file.
void validate_for_device(const runfile::EffectiveConfig& effective) {
  try {
    model::validate_for_device(effective.config.model);
  } catch (const UserError& error) {
    throw UserError(error.code(), runfile::located(error.what(), effective.origins));
  }
}

/// "embedding, layers 0-7": layers as in the names of tensors.
std::string units_text(const model::UnitRange& units, const model::Architecture& config) {
  const std::int64_t head = config.layers + 1;
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (units.begin == 0) {
    add("embedding");
  }
  const int first = std::max(units.begin, 1) - 1;
  const std::int64_t last = std::min<std::int64_t>(units.end, head) - 2;
  if (first == last) {
    add(fmt::format("layer {}", first));
  } else if (first < last) {
    add(fmt::format("layers {}-{}", first, last));
  }
  if (units.end > head) {
    add("head");
  }
  return text;
}

std::string units_text(const std::vector<model::UnitRange>& chunks,
                       const model::Architecture& config) {
  std::vector<std::string> texts;
  for (const model::UnitRange& units : chunks) {
    texts.push_back(units_text(units, config));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// "1.235 B", "124.4 M".
std::string count_text(double count) {
  return count < 1e9 ? fmt::format("{:.4g} M", count / 1e6) : fmt::format("{:.4g} B", count / 1e9);
}

/// What a table's bytes are told in.
struct ByteUnit {
  const char* name;
  int bytes;
  std::string str(std::size_t count) const {
    return fmt::format("{:.3f}", static_cast<double>(count) / bytes);
  }
};

/// In which `largest` has some digits in front of the point.
ByteUnit unit_for(std::size_t largest) {
  constexpr ByteUnit gib_unit{"GiB", 1 << 30};
  constexpr ByteUnit mib_unit{"MiB", 1 << 20};
  return largest >= std::size_t{1} << 30 ? gib_unit : mib_unit;
}

std::size_t bytes_of(const train::RankPlan& plan, device::MemoryUse use) {
  return plan.memory_bytes[static_cast<std::size_t>(use)];
}

/// Of the rank that has most of it.
template <class Bytes>
std::size_t most_of(const std::vector<train::RankPlan>& ranks, Bytes bytes) {
  return std::ranges::max(ranks | std::views::transform(bytes));
}

constexpr const char* stage_row = "{:>5}  {:>11}  {:>9}  {:>9}  {:>9}  {:>11}  {:>9}  {:>9}  {}\n";

std::string stage_line(const PlannedRun& run, const train::RankPlan& plan, const ByteUnit& unit) {
  using device::MemoryUse;
  const int pp = plan.coordinate.pp;
  const auto size = [&](MemoryUse use) { return unit.str(bytes_of(plan, use)); };
  const std::size_t beside = bytes_of(plan, MemoryUse::communication) +
                             bytes_of(plan, MemoryUse::workspace) + plan.library_bytes;
  return fmt::format(stage_row, pp, fmt::format("{:g}", peak_of(run.layout.schedule, pp)),
                     size(MemoryUse::weights), size(MemoryUse::gradients),
                     size(MemoryUse::optimizer), size(MemoryUse::activations), unit.str(beside),
                     unit.str(plan.device_bytes()), units_text(plan.chunks, run.config.model));
}

/// What the rank with most of it has elsewhere; nothing if all is in device memory.
std::string offload_text(const PlannedRun& run, const std::vector<train::RankPlan>& stages) {
  const std::size_t host_bytes = most_of(stages, &train::RankPlan::host_bytes);
  const std::size_t file_bytes = most_of(stages, &train::RankPlan::file_bytes);
  if (host_bytes == 0) {
    return "";
  }
  const ByteUnit unit = unit_for(std::max(host_bytes, file_bytes));
  const std::string in_file = file_bytes == 0
                                  ? ""
                                  : format_message(", {} {} on disk in {}", unit.str(file_bytes),
                                                   unit.name, run.config.offload.nvme_directory);
  return fmt::format("offloaded, each rank at most: {} {} in host memory{}\n", unit.str(host_bytes),
                     unit.name, in_file);
}

/// What is in none of the columns, since it is no tensor.
std::string process_text(std::int64_t ranks) {
  const std::size_t bytes = train::process_bytes(ranks);
  if (bytes == 0) {
    return "the process of each rank beside its tensors: not measured on GPUs\n";
  }
  const ByteUnit unit = unit_for(bytes);
  return fmt::format(
      "the process of each rank beside its tensors (MPI, libraries, heap), at most: {} {}\n",
      unit.str(bytes), unit.name);
}

/// What saves and loads take where the state is in a device's memory.
std::string image_text(const std::vector<train::RankPlan>& stages) {
  const std::size_t bytes = most_of(stages, &train::RankPlan::image_bytes);
  const ByteUnit unit = unit_for(bytes);
  return bytes == 0 ? ""
                    : fmt::format(
                          "the state's image for checkpoints, each rank at most: {} {} in pinned "
                          "host memory\n",
                          unit.str(bytes), unit.name);
}

/// What checkpoint.async and checkpoint.node_local_dir take on the rank that writes most.
std::string copy_text(const PlannedRun& run) {
  const runfile::CheckpointConfig& config = run.config.checkpoint;
  if (!config.async && config.node_local_dir.empty()) {
    return "";
  }
  const std::size_t saved = std::ranges::max(train::saved_bytes(run));
  std::string text;
  if (config.async) {
    const std::size_t bytes = config.async_copies * saved;
    const ByteUnit unit = unit_for(bytes);
    text += fmt::format(
        "copies for checkpoints in the background, each rank at most: {} {} in host memory\n",
        unit.str(bytes), unit.name);
  }
  if (!config.node_local_dir.empty()) {  // and one more while it is written
    const std::size_t bytes = (config.node_local_keep_last + 1) * saved;
    const ByteUnit unit = unit_for(bytes);
    text += format_message(
        "steps between checkpoints, each rank at most: {} {} in {}{}\n", unit.str(bytes), unit.name,
        config.node_local_dir,
        config.node_local_partner ? ", and as much for the node before its own" : "");
  }
  return text;
}

/// "9221, 9237, 9253 ... 10229": all of a short list.
std::string ranks_text(const std::vector<std::int64_t>& ranks) {
  constexpr std::size_t most = 8;
  if (ranks.size() <= most) {
    return fmt::format("{}", fmt::join(ranks, ", "));
  }
  return fmt::format("{}, {}, {} ... {} (every {}th)", ranks[0], ranks[1], ranks[2], ranks.back(),
                     ranks[1] - ranks[0]);
}

/// "[12288, 4096]: rows 1536-3071, columns 0-4095": dims that are cut.
std::string box_text(const model::Parameter& tensor) {
  const Shape& shape = tensor.spec.shape;
  std::string text = shape.str();
  for (std::size_t dim = 0; dim < shape.rank(); ++dim) {
    const std::int64_t begin = tensor.box.offset[dim];
    const std::int64_t count = tensor.box.extent[dim];
    if (count != shape[dim]) {
      text += count == 0 ? fmt::format("  nothing of dim {}", dim)
                         : fmt::format("  dim {}: {}-{}", dim, begin, begin + count - 1);
    }
  }
  return text;
}

std::string tokens_text(const train::RankPlan& plan, std::int64_t context) {
  const auto& [first, second] = plan.tokens;
  const std::string text = fmt::format("{}-{}", first.begin, first.end() - 1);
  return second.count == 0 ? fmt::format("{} of each sequence", text)
                           : fmt::format("{} and {}-{} of the {} of each sequence", text,
                                         second.begin, second.end() - 1, context);
}

}  // namespace

PlannedRun plan_run(const Arguments& arguments) {
  const runfile::EffectiveConfig effective =
      train::load_run(arguments.run_file, arguments.overrides, program::run_file_in_checkpoint);
  runfile::log_remarks(effective);
  validate_for_device(effective);
  return {resolved(effective, arguments.ranks),
          arguments.gpu.value_or(train::usual_compute_capability)};
}

std::string run_report(const PlannedRun& run) {
  const runfile::RunConfig& config = run.config;
  const auto parameters = static_cast<double>(model::parameter_count(config.model));
  std::string text =
      fmt::format("model     {}, {} layers, hidden {}, {} parameters, {}\n",
                  family_name(config.model), config.model.layers, config.model.hidden,
                  count_text(parameters), name(config.train.precision));
  text += fmt::format("mesh      {}: {} ranks\n", run.mesh.str(), run.mesh.ranks());
  text +=
      fmt::format("batch     {} sequences of {} tokens: {} micro-batches of {} on each replica\n",
                  config.train.global_batch, config.model.context, run.batches.accumulation_steps(),
                  config.train.micro_batch);
  text += "\n";
  const std::vector<train::RankPlan> stages = train::plan_stages(run, run.compute_capability);
  const ByteUnit unit = unit_for(most_of(stages, &train::RankPlan::device_bytes));
  text += fmt::format(stage_row, "stage", "micro-b.", "weights", "gradients", "optimizer",
                      "activations", "other", unit.name, "holds");
  for (const train::RankPlan& plan : stages) {
    text += stage_line(run, plan, unit);
  }
  return text + process_text(run.mesh.ranks()) + offload_text(run, stages) + image_text(stages) +
         copy_text(run);
}

std::string rank_report(const PlannedRun& run, std::int64_t rank) {
  if (rank >= run.mesh.ranks()) {
    throw UserError(
        ExitCode::usage,
        format_message("--rank {} does not exist (the run has ranks 0 to {}); name one of them",
                       rank, run.mesh.ranks() - 1));
  }
  const train::RankPlan plan = train::plan_rank(run, rank, run.compute_capability);
  std::string text = fmt::format("rank {}\n", rank);
  for (const comm::Axis axis : comm::all_axes | std::views::reverse) {
    const std::vector<std::int64_t>& line = plan.lines[static_cast<std::size_t>(axis)];
    text += fmt::format("  {}       position {} of {}: ranks {}\n", name(axis),
                        plan.coordinate[axis], line.size(), ranks_text(line));
  }
  text += fmt::format("  tokens   {}\n", tokens_text(plan, run.config.model.context));
  text += fmt::format("  holds    {}\n", units_text(plan.chunks, run.config.model));
  const ByteUnit unit = unit_for(plan.device_bytes());
  text += "  memory  ";
  for (std::size_t use = 0; use < device::memory_use_count; ++use) {
    text += fmt::format(" {} {}", device::name(static_cast<device::MemoryUse>(use)),
                        unit.str(plan.memory_bytes[use]));
  }
  if (plan.library_bytes > 0) {
    text += fmt::format(" libraries {}", unit.str(plan.library_bytes));
  }
  text += fmt::format(", together {} {}\n  tensors\n", unit.str(plan.device_bytes()), unit.name);
  for (const model::Parameter& tensor : plan.tensors) {
    text += fmt::format("    {:<40} {}\n", tensor.spec.name, box_text(tensor));
  }
  return text;
}

}  // namespace fourfold::plan_program
