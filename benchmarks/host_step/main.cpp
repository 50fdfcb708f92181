// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// host_step: whole training steps of GPT-2 124M over random tokens: forward, backward, the sum of
/// gradients over the ranks, clipping, AdamW. First measures the ceiling, the best product of the
/// step while all ranks multiply. Start it with one rank per core: mpiexec -n 2 host_step
#include "random_batch.hpp"
#include "step_report.hpp"
#include "work.hpp"

#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/train/step_runner.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace {

using namespace fourfold;
using Clock = std::chrono::steady_clock;

struct Options {
  std::int64_t batch = 4;
  std::int64_t tokens = 1024;
  int threads = 1;
  int warmup = 1;
  int steps = 3;
  std::string precision = "f32";
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The best product of the step, all ranks multiplying at once; the sum over ranks.
double measure_ceiling(const Options& options, std::int64_t rows, comm::Communicator& world) {
  double best = 0;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    if (options.precision == "f32" && dtype == DType::bf16) {
      continue;
    }
    std::vector<benchmarks::Work> products = benchmarks::products(dtype, rows);
    for (int round = 0; round < 3; ++round) {
      world.barrier();
      for (benchmarks::Work& work : products) {
        const auto start = Clock::now();
        work.run();
        best = std::max(best, work.flop / seconds_since(start));
      }
    }
  }
  return comm::all_reduce_scalar(world, best, comm::ReduceOp::sum);
}

runfile::RunConfig run_config(const Options& options, int ranks) {
  runfile::RunConfig config;
  config.model = model::preset("gpt2-124m");
  config.model.context = options.tokens;
  config.train.global_batch = options.batch;
  config.train.micro_batch = options.batch / ranks;
  config.train.precision = options.precision == "bf16" ? DType::bf16 : DType::f32;
  config.optim.clip_norm = 1.0;
  return config;
}

ExitCode measure(const Options& options, int argc, char** argv) {
  const comm::MpiRuntime mpi(&argc, &argv);
  comm::Communicator& world = mpi.world();
  if (options.batch % world.size() != 0) {
    throw UserError(ExitCode::config,
                    "--batch does not divide by the number of ranks (each takes "
                    "as many sequences) choose a multiple of it");
  }
  const kernels::Runtime kernels(options.threads);
  const std::int64_t sequences = options.batch / world.size();
  const runfile::RunConfig config = run_config(options, world.size());
  benchmarks::StepReport report{
      .model = "gpt2-124m",
      .device = kernels::description(),
      .precision = options.precision,
      .ranks = world.size(),
      .batch = options.batch,
      .micro_batch = sequences,
      .tokens = options.tokens,
      .parameters = model::parameter_count(config.model),
      .flop_per_token = model::flops_per_token(config.model, options.tokens)};
  report.ceiling_flop_per_s = measure_ceiling(options, sequences * options.tokens, world);
  comm::Mesh mesh({.dp = world.size()}, world);
  device::Arena arena;
  const train::ResolvedRun run = train::resolve_run({.config = config}, mesh.shape());
  train::StepRunner runner(run, mesh, arena);
  model::initialise(runner.parameters(), 1, {});
  const benchmarks::RandomBatch random(sequences, options.tokens, config.model.vocab,
                                       static_cast<std::uint64_t>(world.rank()));
  const std::int64_t targets = options.batch * options.tokens;
  report.times =
      benchmarks::time_steps(runner, world, {.warmup = options.warmup, .timed = options.steps},
                             [&](std::int64_t, device::StreamRef) {
                               return train::StepBatches{std::span(&random.batch(), 1), targets};
                             },
                             {});
  if (world.rank() == 0) {
    fmt::print("{}\n", benchmarks::to_json(report));
  }
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Whole training steps of GPT-2 124M on this machine, as JSON", "host_step"};
  Options options;
  command.add_option("--batch", options.batch, "sequences of a step")->capture_default_str();
  command.add_option("--tokens", options.tokens, "tokens of a sequence")->capture_default_str();
  command.add_option("--threads", options.threads, "threads of a rank")->capture_default_str();
  command.add_option("--warmup", options.warmup, "steps before the clock counts")
      ->capture_default_str();
  command.add_option("--steps", options.steps, "steps that count")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--precision", options.precision, "f32 or bf16")
      ->check(CLI::IsMember({"f32", "bf16"}))
      ->capture_default_str();
  return program::run("host_step", [&] {
    if (const auto end = program::parse(command, argc, argv)) {
      return *end;
    }
    return measure(options, argc, argv);
  });
}
