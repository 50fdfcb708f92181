// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// gpu_step: whole training steps of a model on one GPU, by the code that `fourfold train` runs:
/// forward, backward, clipping, AdamW, over random tokens or token files. Prints JSON.
#include "benchmarked_run.hpp"
#include "random_batch.hpp"
#include "step_report.hpp"

#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/matmul_tuning_file.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>
#include <filesystem>

namespace {

using namespace fourfold;

struct Options {
  benchmarks::RunChoice run;
  benchmarks::StepCounts counts{.warmup = 10, .timed = 20, .recorded = 5};
  std::filesystem::path json;
};

/// Of what is free, for tensors; the rest is for the kernels' scratch and the libraries.
std::size_t bytes_for_tensors() {
  const std::size_t free = device::owner_of(device::MemoryKind::device).free_bytes;
  return free - free / 16;
}

/// The batches of a step, over and over: random ones. They differ within a step, and as a whole are
/// larger than any cache.
class RandomBatches {
 public:
  explicit RandomBatches(const runfile::RunConfig& config)
      : targets_(config.train.global_batch * config.model.context) {
    const std::int64_t sequences = config.train.micro_batch;
    for (std::int64_t i = 0; i < config.train.global_batch / sequences; ++i) {
      random_.emplace_back(sequences, config.model.context, config.model.vocab,
                           static_cast<std::uint64_t>(i));
      batches_.push_back(random_.back().batch());
    }
  }
  train::StepBatches next() const { return {batches_, targets_}; }

 private:
  std::int64_t targets_;
  std::deque<benchmarks::RandomBatch> random_;
  std::vector<model::Batch> batches_;
};

benchmarks::DeviceMemory memory_after(const device::Arena& arena) {
  const device::MemoryOwner owner = device::owner_of(device::MemoryKind::device);
  benchmarks::DeviceMemory memory{.total_bytes = owner.total_bytes,
                                  .used_bytes = owner.total_bytes - owner.free_bytes,
                                  .tensors = {}};
  for (std::size_t i = 0; i < device::memory_use_count; ++i) {
    const auto use = static_cast<device::MemoryUse>(i);
    memory.tensors.emplace_back(device::name(use), arena.bytes(use));
  }
  return memory;
}

benchmarks::StepReport empty_report(const Options& options, const runfile::RunConfig& config) {
  const std::string device = device::device_facts().name;
  return {.model = options.run.model,
          .device = fmt::format("{}; {}", device, kernels::description()),
          .precision = std::string(name(config.train.precision)),
          .data = options.run.token_files.empty()
                      ? "random"
                      : fmt::format("{}", fmt::join(options.run.token_files, ", ")),
          .batch = config.train.global_batch,
          .micro_batch = config.train.micro_batch,
          .tokens = config.model.context,
          .parameters = model::parameter_count(config.model),
          .flop_per_token = model::flops_per_token(config.model, config.model.context),
          .peak_flop_per_s = config.train.precision == DType::f32
                                 ? std::nullopt
                                 : device::bf16_peak_flop_per_s(device)};
}

benchmarks::StepReport measure(const Options& options, int argc, char** argv) {
  comm::MpiRuntime mpi(&argc, &argv);
  if (mpi.world().size() != 1) {
    throw UserError(ExitCode::usage,
                    fmt::format("gpu_step was started with {} ranks (it measures one GPU) start it "
                                "without a launcher",
                                mpi.world().size()));
  }
  comm::Communicator& world = mpi.device_world();
  const kernels::Runtime kernels;
  runfile::RunConfig config = benchmarks::run_config(options.run);
  benchmarks::fit_micro_batch(config, bytes_for_tensors());
  benchmarks::StepReport report = empty_report(options, config);
  train::MatmulTuningFile choices(config, mpi.world());
  comm::Mesh mesh({}, world);
  const device::Stream stream;
  device::Arena arena;
  const train::ResolvedRun run = train::resolve_run({.config = config}, mesh.shape());
  train::StepRunner runner(run, mesh, arena);
  std::optional<data::TokenDataset> dataset;
  std::optional<train::BatchLoader> loader;
  std::optional<RandomBatches> random;
  if (options.run.token_files.empty()) {
    random.emplace(config);
  } else {
    dataset.emplace(config.data.train,
                    train::dataset_options(config, data::TokenDataset::Order::shuffled));
    loader.emplace(*dataset, run.batches, 0, train::held_tokens(mesh, config.model.context), arena);
  }
  arena.seal();
  runner.initialise(static_cast<std::uint64_t>(config.train.seed), stream);
  const auto next = [&](std::int64_t step, device::StreamRef on) {
    return random ? random->next() : loader->load(step, step * config.train.global_batch, on);
  };
  report.times = benchmarks::time_steps(runner, mpi.world(), options.counts, next, stream);
  report.memory = memory_after(arena);
  choices.write();
  return report;
}

ExitCode measure_and_tell(const Options& options, int argc, char** argv) {
  const std::string text = to_json(measure(options, argc, argv)) + "\n";
  fmt::print("{}", text);
  if (!options.json.empty()) {
    io::AtomicFile file(options.json);
    file.write(text);
    file.publish();
  }
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Whole training steps on one GPU, as JSON", "gpu_step"};
  Options options;
  command.add_option("--model", options.run.model, "what to train")
      ->check(CLI::IsMember(benchmarks::benchmarked_models()))
      ->capture_default_str();
  command.add_option("--tokens", options.run.tokens, "of a sequence; 0: what the model has")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--micro-batch", options.run.micro_batch,
                  "sequences of a forward pass, or fewer if memory wants it; 0: the model's")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--global-batch", options.run.global_batch,
                  "sequences of a step; 0: as many as make 65,536 tokens")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--token-file", options.run.token_files,
                     "token files to train on, as data.train; without: random tokens");
  command.add_option("--set", options.run.overrides, "a key of the run file: table.key=value");
  command.add_option("--warmup", options.counts.warmup, "steps before the clock counts")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--steps", options.counts.timed, "steps that count")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--recorded", options.counts.recorded, "further steps, for times of phases")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--json", options.json, "where to write what is printed as well");
  return program::run("gpu_step", [&] {
    if (const auto end = program::parse(command, argc, argv)) {
      return *end;
    }
    return measure_and_tell(options, argc, argv);
  });
}
