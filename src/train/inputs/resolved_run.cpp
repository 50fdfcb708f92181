// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>
#include <fourfold/schedule/split_layers.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace fourfold::train {
namespace {

/// The keys of pipelines have no effect then, so that a pipeline's run file goes on on one rank.
bool is_whole(const runfile::RunConfig& config, int pp) {
  return pp == 1 && config.mesh.chunks <= 1;
}

bool has_a_name(const std::string& schedule) {
  return std::ranges::count(schedule::schedule_names(), schedule) > 0;
}

/// A schedule with a name; one chunk on one rank takes any.
schedule::ScheduleRequest request_of(const runfile::RunConfig& config,
                                     const comm::MeshShape& mesh) {
  const auto micro_batches = static_cast<int>(batch_plan(config, mesh).accumulation_steps());
  if (is_whole(config, mesh.pp)) {
    return {.micro_batches = micro_batches};
  }
  return {.name = config.mesh.schedule,
          .stages = mesh.pp,
          .micro_batches = micro_batches,
          .chunks = config.mesh.chunks,
          .sequences = mesh.dp * config.train.micro_batch};
}

schedule::Schedule schedule_from_file(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                                      const std::string& csv) {
  const std::string& name = config.mesh.schedule;
  schedule::Schedule schedule = schedule::read_schedule_csv(
      csv, name, mesh.pp, static_cast<int>(batch_plan(config, mesh).accumulation_steps()));
  if (config.mesh.chunks != 0 && config.mesh.chunks != schedule.chunks) {
    throw UserError(ExitCode::config,
                    format_message("mesh.chunks = {}, but the schedule {} has {} (they are its "
                                   "cells); set it to {} or leave it out",
                                   config.mesh.chunks, name, schedule.chunks, schedule.chunks));
  }
  return schedule;
}

[[noreturn]] void refuse_group(int group, int plane, const comm::MeshShape& mesh, bool local) {
  int below = std::min(group, plane);
  while (plane % below != 0) {
    --below;
  }
  const std::string ranks =
      local
          ? fmt::format("mesh.cp = {} (with mesh.dp_mode = \"local\" the {} ranks of each replica",
                        mesh.cp, plane)
          : fmt::format("mesh.dp = {} x mesh.cp = {} (these {} ranks", mesh.dp, mesh.cp, plane);
  throw UserError(ExitCode::config,
                  format_message("mesh.zero_group = {} does not divide {} are dealt to groups of "
                                 "that size); set it to {}, or leave it out",
                                 group, ranks, below));
}

schedule::StageLayout lay_out(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                              const std::string& schedule_csv) {
  parallel::validate_tensor_cut(config.model, mesh.tp);
  parallel::validate_context_cut(config.model, config.mesh.context_mode, mesh.cp, mesh.tp);
  const bool whole = is_whole(config, mesh.pp);
  schedule::LayerSplit split{
      .stages = mesh.pp,
      .stage_layers = whole ? std::vector<std::int64_t>{} : config.mesh.stage_layers};
  schedule::StageLayout layout{.schedule = {}, .stages = {}, .tied = config.model.tie_embeddings};
  if (whole || has_a_name(config.mesh.schedule)) {
    // Layers are dealt out first: what does not fit them is a wrong mesh.pp, whatever the batch.
    const schedule::ScheduleRequest request = request_of(config, mesh);
    split.chunks = schedule::chunks_of(request);
    split.least_chunks = schedule::usual_chunks(request.name);
    layout.stages = schedule::split_layers(config.model, split);
    layout.schedule = schedule::make_schedule(request);
  } else {
    layout.schedule = schedule_from_file(config, mesh, schedule_csv);
    split.chunks = layout.schedule.chunks;
    split.least_stages = split.least_chunks = 0;
    layout.stages = schedule::split_layers(config.model, split);
  }
  if (const auto defect = schedule::check_schedule(layout.schedule)) {
    throw Error(ExitCode::internal,
                format_message("the schedule {} cannot run: {}", layout.schedule.name, *defect));
  }
  return layout;
}

parallel::TensorParallelOptions tensor_options(const runfile::RunConfig& config,
                                               const comm::MeshShape& mesh) {
  return {.sequence_parallel = config.mesh.sequence_parallel,
          .rows = config.train.micro_batch * (config.model.context / mesh.cp),
          .hidden = config.model.hidden,
          .compute = config.train.precision};
}

parallel::ZeroOptions zero_options(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                                   bool local) {
  const runfile::MeshConfig& wanted = config.mesh;
  const int plane = local ? mesh.cp : mesh.data_plane_ranks();
  const int group = wanted.zero_group == 0 ? plane : wanted.zero_group;
  if (wanted.zero > 0 && plane % group != 0) {
    refuse_group(group, plane, mesh, local);
  }
  const bool each_micro_batch = wanted.dp_reduce == runfile::GradientReduce::automatic
                                    ? wanted.zero >= 2 && plane > 1
                                    : wanted.dp_reduce == runfile::GradientReduce::micro_batch;
  const int ranks = wanted.zero == 0 ? 1 : group;
  const bool double_buffered =
      wanted.zero == 3 && ranks > 1 && wanted.zero3_keep == runfile::ZeroKeep::micro_batch;
  return {.shard_ranks = ranks,
          .reduce_each_micro_batch = each_micro_batch,
          .gather_each_unit = double_buffered,
          .tiles = double_buffered ? wanted.tile_linear : 1,
          .offloads_state = config.offload.optimizer != runfile::StateTier::none,
          .bucket_bytes =
              std::max<std::int64_t>(4, static_cast<std::int64_t>(wanted.dp_bucket_mb * 1e6)),
          .sum_ranks = plane};
}

parallel::CompressionOptions compression_options(const runfile::RunConfig& config) {
  return {.kind = config.mesh.dp_compress.kind,
          .rank = config.mesh.dp_compress.rank,
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .steps_may_skip = config.train.precision == DType::f16};
}

/// What is refused is told with its place in the run file.
template <class Work>
auto placed(const runfile::EffectiveConfig& effective, const Work& work) {
  try {
    return work(effective.config);
  } catch (const UserError& error) {
    throw UserError(error.code(), runfile::located(error.what(), effective.origins), error.where());
  }
}

std::string schedule_text(const runfile::RunConfig& config) {
  const std::string& name = config.mesh.schedule;
  if (is_whole(config, config.mesh.shape.pp) || has_a_name(name)) {
    return "";
  }
  auto text = schedule::schedule_file_text(name);
  if (!text) {
    const auto near = nearest(name, schedule::schedule_names());
    throw UserError(
        ExitCode::config,
        format_message(
            "mesh.schedule = \"{}\" is neither a schedule ({}) nor a file that can be read; {}",
            name, fmt::join(schedule::schedule_names(), ", "),
            near ? format_message("did you mean \"{}\"?", *near) : "use one of these"));
  }
  return std::move(*text);
}

ResolvedRun resolve(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                    const std::string& schedule_csv) {
  const bool local = config.mesh.dp_mode == runfile::DataParallelMode::local && mesh.dp > 1;
  schedule::StageLayout layout = lay_out(config, mesh, schedule_csv);
  return {.config = config,
          .mesh = mesh,
          .batches = batch_plan(config, mesh),
          .layout = std::move(layout),
          .tensor = tensor_options(config, mesh),
          .context = context_options(config, mesh),
          .zero = zero_options(config, mesh, local),
          .compression = compression_options(config),
          .rules = rules_of(config.optim),
          .trains_locally = local};
}

comm::MeshShape mesh_of(const runfile::RunConfig& config, std::int64_t ranks) {
  const runfile::TrainConfig& train = config.train;
  const comm::MeshShape mesh =
      comm::resolve_mesh(config.mesh.shape, ranks, train.global_batch / train.micro_batch);
  runfile::validate_batch(config, mesh.dp);
  return mesh;
}

/// The run file on the other mesh, with a batch that does not stand in the way.
runfile::RunConfig config_on(const runfile::RunConfig& saved, const std::string& mesh) {
  std::vector<std::string> overrides = runfile::mesh_overrides(mesh);
  std::string batch;
  for (const std::string& text : overrides) {
    if (!text.starts_with("mesh.")) {
      throw UserError(
          ExitCode::config,
          format_message("{} is no key of [mesh] (a state is cut by these alone); leave it out",
                         text.substr(0, text.find('='))));
    }
    if (text.starts_with("mesh.dp=") && text != "mesh.dp=auto") {
      batch = "train.global_batch=" + text.substr(8);
    }
  }
  overrides.push_back(batch);
  runfile::RunConfig open = saved;
  open.train.micro_batch = 1;
  try {
    return runfile::parse_run_config(to_toml(open), "the checkpoint's run file", overrides).config;
  } catch (const UserError& error) {
    constexpr std::string_view origin = "--set: ";  // nobody wrote that
    std::string message = error.what();
    for (std::size_t at = message.find(origin); at != std::string::npos;
         at = message.find(origin, at)) {
      message.erase(at, origin.size());
    }
    throw UserError(error.code(), message, error.where());
  }
}

}  // namespace

parallel::ContextParallelOptions context_options(const runfile::RunConfig& config,
                                                 const comm::MeshShape& mesh) {
  return {.mode = config.mesh.context_mode,
          .sequences = config.train.micro_batch,
          .tokens = config.model.context / mesh.cp,
          .heads = config.model.attention.heads / mesh.tp,
          .kv_heads = std::max<std::int64_t>(1, config.model.attention.kv_heads / mesh.tp),
          .head_dim = config.model.attention.head_dim,
          .compute = config.train.precision};
}

std::string schedule_file_text(const runfile::EffectiveConfig& effective) {
  return placed(effective, schedule_text);
}

ResolvedRun resolve_run(const runfile::EffectiveConfig& effective, std::int64_t ranks) {
  return placed(effective, [&](const runfile::RunConfig& config) {
    const comm::MeshShape mesh = mesh_of(config, ranks);
    return resolve(config, mesh, schedule_text(config));
  });
}

ResolvedRun resolve_run(const runfile::EffectiveConfig& effective, comm::Communicator& world) {
  const auto mesh = placed(
      effective, [&](const runfile::RunConfig& config) { return mesh_of(config, world.size()); });
  std::string csv;
  comm::run_on_root(world, [&] { csv = schedule_file_text(effective); });
  csv = comm::broadcast_text(world, std::move(csv), 0);
  return placed(effective,
                [&](const runfile::RunConfig& config) { return resolve(config, mesh, csv); });
}

ResolvedRun resolve_run(runfile::EffectiveConfig effective, const comm::MeshShape& mesh) {
  effective.config.mesh.shape = mesh;
  return resolve_run(effective, mesh.ranks());
}

ResolvedRun resolve_target(const runfile::RunConfig& saved, const std::string& mesh) {
  runfile::RunConfig config = config_on(saved, mesh);
  const comm::MeshShape shape = config.mesh.shape;
  if (shape.dp == 0) {
    throw UserError(ExitCode::config,
                    format_message("the mesh \"{}\" leaves dp open, and there are no ranks here to "
                                   "tell it from; give its number",
                                   mesh));
  }
  constexpr std::int64_t enough_micro_batches = 4;  // per stage and chunk, for any schedule
  config.train.global_batch =
      shape.dp * enough_micro_batches * shape.pp * std::max<std::int64_t>(2, config.mesh.chunks);
  return resolve_run({.config = std::move(config)}, shape.ranks());  // of lines that nobody wrote
}

}  // namespace fourfold::train
