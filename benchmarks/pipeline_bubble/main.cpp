// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// pipeline_bubble: what each schedule loses, measured with the executor and priced by the
/// simulator from the costs of the same step. Layers sleep, one rank longer than the others, so
/// that the number of cores does not matter. Alone: ranks are threads; under mpiexec: processes.
#include "delayed_pipeline.hpp"

#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/plan/simulate.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>

namespace {

using namespace fourfold;
using benchmarks::Delays;

struct Options {
  int stages = 4;
  int micro_batches = 8;
  double layer_ms = 4;
  double slowdown = 1.5;
};

std::string row(const schedule::Schedule& schedule, const schedule::Timeline& measured) {
  const schedule::TimelineSummary run = summarize(measured);
  const schedule::TimelineSummary plan =
      summarize(plan::simulate(schedule, plan::measured_costs(measured)));
  const double difference = (run.bubble_s() - plan.bubble_s()) / plan.bubble_s();
  return fmt::format("{:<12}  {:>9.1f}  {:>9.1f} {:>7.2f} %  {:>9.1f} {:>7.2f} %  {:>+7.2f} %\n",
                     schedule.name, 1e3 * run.makespan_s(), 1e3 * run.bubble_s(),
                     100 * run.bubble_s() / run.makespan_s(), 1e3 * plan.bubble_s(),
                     100 * plan.bubble_s() / plan.makespan_s(), 100 * difference);
}

Delays delays_of(const Options& options, int rank) {
  const double factor = rank == 1 ? options.slowdown : 1;
  const double pass_s = factor * options.layer_ms / 1e3;
  return {.pass_s = pass_s, .weights_s = pass_s};
}

schedule::Schedule schedule_of(const std::string& name, const Options& options,
                               const comm::Communicator& world) {
  return schedule::make_schedule(
      {.name = name, .stages = world.size(), .micro_batches = options.micro_batches});
}

void measure(const Options& options, comm::Communicator& world) {
  const bool first = world.rank() == 0;
  if (first) {
    fmt::print(
        "{} stages, {} micro-batches, layers of {:g} ms, those of rank 1 of {:g} ms\n"
        "schedule        step, ms      bubble, measured       simulated         difference\n",
        world.size(), options.micro_batches, options.layer_ms, options.layer_ms * options.slowdown);
  }
  for (const std::string& name : schedule::schedule_names()) {
    const schedule::Schedule schedule = schedule_of(name, options, world);
    const schedule::Timeline measured =
        benchmarks::measure_delayed(schedule, delays_of(options, world.rank()), world);
    if (first) {
      fmt::print("{}", row(schedule, measured));
      std::fflush(stdout);
    }
  }
}

ExitCode run(const Options& options, int argc, char** argv) {
  const comm::MpiRuntime mpi(&argc, &argv);
  const kernels::Runtime kernels;
  if (mpi.world().size() > 1) {
    measure(options, mpi.world());
  } else {
    comm::run_ranks(options.stages, [&](comm::Communicator& world) { measure(options, world); });
  }
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"The bubble of each pipeline schedule, measured and simulated",
                   "pipeline_bubble"};
  Options options;
  command.add_option("--stages", options.stages, "ranks, where they are threads")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  command.add_option("--micro-batches", options.micro_batches, "of a step")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--layer-ms", options.layer_ms, "how long each pass of a layer lasts")
      ->capture_default_str();
  command.add_option("--slowdown", options.slowdown, "of the layers of rank 1")
      ->capture_default_str();
  return program::run("pipeline_bubble", [&] {
    if (const auto end = program::parse(command, argc, argv)) {
      return *end;
    }
    return run(options, argc, argv);
  });
}
