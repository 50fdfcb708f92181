// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace fourfold::runfile {
namespace {

using enum OnResume;

std::vector<RunKey> mesh_keys() {
  const auto member = [](auto path) { return field(&RunConfig::mesh, path); };
  const std::string table = "mesh";
  const Relevance in_pipelines{"mesh.pp > 1 or mesh.chunks > 1", [](const RunConfig& config) {
                                 return config.mesh.pp > 1 || config.mesh.chunks > 1;
                               }};
  const Relevance sharded{"mesh.zero > 0",
                          [](const RunConfig& config) { return config.mesh.zero > 0; }};
  return {
      {.table = table,
       .name = "dp",
       .field = member(&MeshConfig::dp),
       .unit = "ranks",
       .meaning =
           "Data-parallel degree: each of these ranks trains on its share of the global batch.",
       .minimum = 1,
       .maximum = 1048576,
       .automatic = "the ranks that pp, cp and tp leave"},
      {.table = table,
       .name = "pp",
       .field = member(&MeshConfig::pp),
       .unit = "ranks",
       .meaning = "Pipeline-parallel degree: each of these ranks holds some of the layers.",
       .minimum = 1,
       .maximum = 65536},
      {.table = table,
       .name = "cp",
       .field = member(&MeshConfig::cp),
       .unit = "ranks",
       .meaning = "Context-parallel degree: each of these ranks holds 1/cp of the tokens of every "
                  "sequence. 2 x cp must divide model.context.",
       .minimum = 1,
       .maximum = 65536},
      {.table = table,
       .name = "tp",
       .field = member(&MeshConfig::tp),
       .unit = "ranks",
       .meaning =
           "Tensor-parallel degree: each of these ranks holds a slice of every matrix. It must "
           "divide model.heads, and divide or be a multiple of model.kv_heads.",
       .minimum = 1,
       .maximum = 65536},
      {.table = table,
       .name = "sequence_parallel",
       .field = member(&MeshConfig::sequence_parallel),
       .meaning = "Ranks of the tp axis also share the rows of norms, dropout and residuals: less "
                  "memory, a few gathers more beside the backward pass.",
       .relevance = {"mesh.tp > 1", [](const RunConfig& config) { return config.mesh.tp > 1; }}},
      {.table = table,
       .name = "context_mode",
       .field = named_field<ContextMode>(
           {ContextMode::ring, ContextMode::ulysses, ContextMode::allgather}, &RunConfig::mesh,
           &MeshConfig::context_mode),
       .meaning =
           "How attention meets the other ranks' tokens: keys and values travel around the ranks "
           "while they compute (ring), heads are dealt to the ranks (ulysses: needs at least cp "
           "heads per rank of the tp axis), or every rank gathers all keys and values (allgather).",
       .relevance = {"mesh.cp > 1", [](const RunConfig& config) { return config.mesh.cp > 1; }}},
      {.table = table,
       .name = "schedule",
       .field = member(&MeshConfig::schedule),
       .meaning =
           "In which order a pipeline's ranks run micro-batches: naive, gpipe, 1f1b, interleaved, "
           "zb-h1, zb-v, or a CSV file (`fourfold plan --csv` writes one to start from).",
       .relevance = in_pipelines},
      {.table = table,
       .name = "chunks",
       .field = member(&MeshConfig::chunks),
       .meaning = "Pieces of the model per pipeline rank. More of them make the bubble shorter and "
                  "the messages more.",
       .minimum = 1,
       .maximum = 1024,
       .automatic = "2 for interleaved and zb-v, else 1"},
      {.table = table,
       .name = "stage_layers",
       .field = member(&MeshConfig::stage_layers),
       .unit = "layers",
       .meaning =
           "Layers of each of the pp x chunks pieces of the model, from the first. Empty: by "
           "cost, the head counted.",
       .minimum = 0,
       .maximum = 1e9,
       .relevance = in_pipelines},
      {.table = table,
       .name = "zero",
       .field = member(&MeshConfig::zero),
       .meaning =
           "ZeRO stage: what the dp x cp ranks with the same parameters share out rather than "
           "each hold: 1 the optimizer's state, 2 gradients too, 3 weights too.",
       .minimum = 0,
       .maximum = 3},
      {.table = table,
       .name = "zero_group",
       .field = member(&MeshConfig::zero_group),
       .unit = "ranks",
       .meaning =
           "Ranks that share them out; groups of so many neighbours are replicas of each other "
           "(hybrid sharding). It must divide dp x cp.",
       .minimum = 1,
       .maximum = 65536,
       .automatic = "dp x cp",
       .relevance = sharded},
      {.table = table,
       .name = "zero3_keep",
       .field = named_field<ZeroKeep>({ZeroKeep::micro_batch, ZeroKeep::step}, &RunConfig::mesh,
                                      &MeshConfig::zero3_keep),
       .meaning = "How long zero = 3 keeps the weights it gathers: until the next block wants the "
                  "memory, or for the step, with the memory of zero = 2 and a gather per step.",
       .relevance = {"mesh.zero = 3",
                     [](const RunConfig& config) { return config.mesh.zero == 3; }}},
      {.table = table,
       .name = "tile_linear",
       .field = member(&MeshConfig::tile_linear),
       .meaning = "Tiles of rows in which zero = 3 gathers each matrix, uses it and reduces its "
                  "gradient, one after the other, so that the largest layer need not be in memory "
                  "whole. A matrix with fewer rows has as many tiles; tiles of few rows share out "
                  "badly among many ranks. docs/memory.md has bytes and times.",
       .minimum = 1,
       .maximum = 64,
       .relevance = {"mesh.zero = 3 and mesh.zero3_keep = \"micro_batch\"",
                     [](const RunConfig& config) {
                       return config.mesh.zero == 3 &&
                              config.mesh.zero3_keep == ZeroKeep::micro_batch;
                     }}},
      {.table = table,
       .name = "dp_reduce",
       .field = named_field<GradientReduce>(
           {GradientReduce::automatic, GradientReduce::step, GradientReduce::micro_batch},
           &RunConfig::mesh, &MeshConfig::dp_reduce),
       .meaning = "When gradients are summed over the ranks: once per step, held whole until then, "
                  "or after every micro-batch, so that blocks need memory for theirs only in turn. "
                  "auto: micro_batch for zero = 2 and 3, else step. With the same setting zero "
                  "changes no bits (between CPUs; NCCL promises that of a mesh, not across them)."},
      {.table = table,
       .name = "dp_bucket_mb",
       .field = member(&MeshConfig::dp_bucket_mb),
       .unit = "MB (10^6 bytes)",
       .meaning = "Gradients are summed over the data-parallel ranks in buckets of this size while "
                  "the backward pass "
                  "goes on.",
       .minimum = 0,
       .maximum = 1e6,
       .above_minimum = true},
      {.table = table,
       .name = "host_collectives",
       .field = named_field<HostCollectives>({HostCollectives::automatic, HostCollectives::direct,
                                              HostCollectives::ring, HostCollectives::tree},
                                             &RunConfig::mesh, &MeshConfig::host_collectives),
       .meaning =
           "How ranks on CPUs add up and gather: through memory they share where all of them are "
           "on one machine, else directly (auto), by messages from each to each (direct), round a "
           "ring, or up and down a tree. All but tree give the same bits."},
      {.table = table,
       .name = "share_devices",
       .field = member(&MeshConfig::share_devices),
       .meaning = "Lets several ranks take the same GPU, to try a mesh out where there are fewer "
                  "GPUs than ranks: slow, and NCCL does not promise that it works."},
  };
}

std::vector<RunKey> schedule_keys() {
  const auto member = [](auto path) {
    return field(&RunConfig::optim, &OptimConfig::schedule, path);
  };
  const auto kind_is = [](ScheduleKind kind, bool wanted) {
    return [=](const RunConfig& config) { return (config.optim.schedule.kind == kind) == wanted; };
  };
  const std::string table = "optim";
  const Relevance decays{"a schedule that decays", kind_is(ScheduleKind::constant, false)};
  return {
      {.table = table,
       .name = "lr",
       .field = member(&LearningRateSchedule::lr),
       .meaning = "Learning rate after the warm-up.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "schedule",
       .field = named_field<ScheduleKind>({ScheduleKind::warmup_cosine, ScheduleKind::linear,
                                           ScheduleKind::constant, ScheduleKind::wsd},
                                          &RunConfig::optim, &OptimConfig::schedule,
                                          &LearningRateSchedule::kind),
       .meaning = "How the rate falls after the warm-up: half a cosine, a line, not at all, or "
                  "(wsd) a line over the last "
                  "cooldown_steps only.",
       .on_resume = needs_allowance},
      {.table = table,
       .name = "warmup_steps",
       .field = member(&LearningRateSchedule::warmup_steps),
       .unit = "updates",
       .meaning = "Updates over which the rate rises linearly to lr, with every schedule.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "decay_steps",
       .field = member(&LearningRateSchedule::decay_steps),
       .unit = "updates",
       .meaning = "Updates, counted from the first, after which min_lr is reached. Write it down "
                  "if train.steps will "
                  "be raised later: the schedule then stays what it was.",
       .minimum = 1,
       .automatic = "train.steps",
       .relevance = decays,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "min_lr",
       .field = member(&LearningRateSchedule::min_lr),
       .meaning = "Rate at the end of the decay and after it.",
       .minimum = 0,
       .relevance = decays,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "cooldown_steps",
       .field = member(&LearningRateSchedule::cooldown_steps),
       .unit = "updates",
       .meaning = "Length of the decay at the end of wsd.",
       .minimum = 1,
       .automatic = "a tenth of optim.decay_steps",
       .relevance = {"optim.schedule = \"wsd\"", kind_is(ScheduleKind::wsd, true)},
       .on_resume = needs_allowance},
  };
}

std::vector<RunKey> optim_keys() {
  const auto member = [](auto path) { return field(&RunConfig::optim, path); };
  const auto uses_momentum = [](bool wanted) {
    return [=](const RunConfig& config) {
      return (config.optim.name == OptimizerKind::sgd) == wanted;
    };
  };
  const std::string table = "optim";
  const Relevance adams{"optim.name = \"adamw\" or \"adam\"", uses_momentum(false)};
  std::vector<RunKey> keys{
      {.table = table,
       .name = "name",
       .field = named_field<OptimizerKind>(
           {OptimizerKind::adamw, OptimizerKind::adam, OptimizerKind::sgd}, &RunConfig::optim,
           &OptimConfig::name),
       .meaning = "AdamW (decoupled weight decay), Adam (decay added to the gradient) or SGD with "
                  "momentum.",
       .on_resume = impossible},
  };
  std::ranges::move(schedule_keys(), std::back_inserter(keys));
  std::vector<RunKey> rest{
      {.table = table,
       .name = "beta1",
       .field = member(&OptimConfig::beta1),
       .meaning = "Decay of the mean of gradients.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = adams,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "beta2",
       .field = member(&OptimConfig::beta2),
       .meaning = "Decay of the mean of squared gradients.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = adams,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "epsilon",
       .field = member(&OptimConfig::epsilon),
       .meaning = "Added to the root of the second moment.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = adams,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "momentum",
       .field = member(&OptimConfig::momentum),
       .meaning = "Momentum without dampening; 0: plain SGD.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = {"optim.name = \"sgd\"", uses_momentum(true)},
       .on_resume = needs_allowance},
      {.table = table,
       .name = "weight_decay",
       .field = member(&OptimConfig::weight_decay),
       .meaning = "Weight decay of matrices and embeddings; norms and biases never decay.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "clip_norm",
       .field = member(&OptimConfig::clip_norm),
       .meaning = "Gradients are scaled down to this global L2 norm; 0: no clipping.",
       .minimum = 0,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "post_validation",
       .field = member(&OptimConfig::post_validation),
       .meaning = "Stages of a pipeline begin the next step's forward passes before they know the "
                  "norm of all gradients, on weights as an update without clipping makes them; "
                  "where the norm says otherwise, update and passes are made again. The bits are "
                  "the same. docs/parallelism.md tells when it pays.",
       .relevance = {"mesh.pp > 1", [](const RunConfig& config) { return config.mesh.pp > 1; }}},
      {.table = table,
       .name = "stochastic_rounding",
       .field = member(&OptimConfig::stochastic_rounding),
       .meaning = "Weights are rounded from their f32 masters to bf16 up or down at random, so "
                  "that on average nothing is lost; the random numbers are the same on every mesh. "
                  "false: to nearest. Only with train.precision = \"bf16\".",
       .on_resume = needs_allowance},
  };
  std::ranges::move(rest, std::back_inserter(keys));
  return keys;
}

std::vector<RunKey> data_keys() {
  const auto member = [](auto path) { return field(&RunConfig::data, path); };
  return {
      {.table = "data",
       .name = "train",
       .field = member(&DataConfig::train),
       .meaning = "Token files to train on: paths, prefixes of .bin/.idx pairs, or globs (sorted "
                  "by name).",
       .on_resume = needs_allowance},
      {.table = "data",
       .name = "validation",
       .field = member(&DataConfig::validation),
       .meaning = "Held-back token files for evaluation; empty: no evaluation."},
      {.table = "data",
       .name = "tokenizer",
       .field = member(&DataConfig::tokenizer),
       .meaning = "Tokenizer that made the token files: \"byte\" or the path of its file. "
                  "Generated text is decoded "
                  "with it.",
       .on_resume = needs_allowance},
  };
}

std::vector<RunKey> log_keys() {
  const auto member = [](auto path) { return field(&RunConfig::log, path); };
  return {
      {.table = "log",
       .name = "dir",
       .field = member(&LogConfig::dir),
       .meaning = "Directory of the run: metrics.jsonl, status.json, config.toml, report.html, "
                  "exit.json."},
      {.table = "log",
       .name = "every_steps",
       .field = member(&LogConfig::every_steps),
       .unit = "updates",
       .meaning =
           "Updates between records and log lines; the first and the last step always have one.",
       .minimum = 1},
      {.table = "log",
       .name = "tensorboard",
       .field = member(&LogConfig::tensorboard),
       .meaning = "Write a TensorBoard event file to log.dir."},
      {.table = "log",
       .name = "report",
       .field = member(&LogConfig::report),
       .meaning = "Write report.html to log.dir when the run ends."},
      {.table = "log",
       .name = "trace",
       .field = member(&LogConfig::trace),
       .meaning = "Measure what each rank of the first pipeline does when, and write it to log.dir "
                  "beside what the schedule would take by these costs: trace.json for Perfetto "
                  "(ui.perfetto.dev), timeline.svg to look at."},
      {.table = "log",
       .name = "trace_steps",
       .field = member(&LogConfig::trace_steps),
       .unit = "updates",
       .meaning = "How many updates are traced, from the second one after a start on.",
       .minimum = 1,
       .maximum = 100},
      {.table = "log",
       .name = "peak_tflops",
       .field = member(&LogConfig::peak_tflops),
       .unit = "TFLOP/s",
       .meaning = "What the device of a rank can do at most, against which MFU is counted. 0: the "
                  "dense bf16 peak of the GPU's data sheet, where it is known and train.precision "
                  "is bf16 or f16; else no MFU is shown.",
       .minimum = 0,
       .maximum = 1e6},
      {.table = "log",
       .name = "progress",
       .field = named_field<ProgressMode>(
           {ProgressMode::automatic, ProgressMode::bar, ProgressMode::plain, ProgressMode::none},
           &RunConfig::log, &LogConfig::progress),
       .meaning = "A bar, plain lines, or nothing; auto: a bar on a terminal, lines elsewhere. "
                  "--progress is short for it."},
  };
}

std::vector<RunKey> watch_keys() {
  const auto member = [](auto path) { return field(&RunConfig::watch, path); };
  return {
      {.table = "watch",
       .name = "enabled",
       .field = member(&WatchConfig::enabled),
       .meaning = "Watch the ranks: a thread beside each tells two of them, over TCP, what it is "
                  "in. A run that hangs is ended with exit code 86, and hang.json in log.dir names "
                  "who hangs where."},
      {.table = "watch",
       .name = "deadline_s",
       .field = member(&WatchConfig::deadline_s),
       .unit = "seconds",
       .meaning = "How long a rank may wait for others in one operation: longer than the slowest "
                  "thing that one rank does alone (a save to a slow file system).",
       .minimum = 2,
       .maximum = 86400},
      {.table = "watch",
       .name = "silence_s",
       .field = member(&WatchConfig::silence_s),
       .unit = "seconds",
       .meaning = "How long a rank may give no sign of life, as one does that is stopped or whose "
                  "node is gone. After 8 s it is named in the log.",
       .minimum = 2,
       .maximum = 86400},
      {.table = "watch",
       .name = "start_s",
       .field = member(&WatchConfig::start_s),
       .unit = "seconds",
       .meaning = "How long ranks may wait in MPI_Init for others to come. Those that wait then "
                  "meet in log.dir for a quarter of that time (at most 75 s), name who is missing "
                  "and end the run with exit code 86. 0: the start is not watched.",
       .minimum = 0,
       .maximum = 86400},
  };
}

std::vector<RunKey> all_keys() {
  std::vector<RunKey> keys = model_keys();
  for (auto& part : {mesh_keys(), traffic_keys(), train_keys(), optim_keys(), outer_keys(),
                     offload_keys(), data_keys(), checkpoint_keys(), log_keys(), watch_keys()}) {
    keys.insert(keys.end(), part.begin(), part.end());
  }
  return keys;
}

}  // namespace

std::span<const RunKey> run_keys() {
  static const std::vector<RunKey> keys = all_keys();
  return keys;
}

const RunKey* find_run_key(std::string_view full_name) {
  const auto keys = run_keys();
  const auto found = std::ranges::find(keys, full_name, &RunKey::full_name);
  return found == keys.end() ? nullptr : &*found;
}

std::span<const RunTable> run_tables() {
  static const std::array<RunTable, 10> tables{{
      {"model",
       "What is trained. A preset fills in the whole table; keys beside it change single values, "
       "and "
       "kv_heads follows heads where the preset has as many of both."},
      {"model.rope_scaling",
       "Rotary positions for contexts longer than the model was first trained for (llama)."},
      {"mesh",
       "How the ranks are arranged. The product of dp, pp, cp and tp is the number of ranks."},
      {"train", "How much and in which steps."},
      {"optim", "Optimizer and learning rate."},
      {"offload", "What lies elsewhere than in device memory (docs/memory.md)."},
      {"data", "Token files, as `fourfold data prepare` writes them."},
      {"checkpoint", "When and where the state is saved, and what a start goes on from."},
      {"log", "What the run tells about itself, and where."},
      {"watch", "When a run that stands still is ended."},
  }};
  return tables;
}

}  // namespace fourfold::runfile
