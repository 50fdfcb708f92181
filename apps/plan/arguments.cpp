// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/device.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fourfold::plan_program {
namespace {

/// Beyond it sums of a long step lose their digits.
constexpr double most_time = 1e9;

bool is_time(double value) {
  return std::isfinite(value) && value >= 0 && value <= most_time;
}

[[noreturn]] void refuse(const std::string& message) {
  throw UserError(ExitCode::usage, message);
}

void describe_schedule(CLI::App& command, Arguments& arguments) {
  command
      .add_option("--schedule", arguments.schedule.name,
                  "Price a schedule by itself: naive, gpipe, 1f1b, interleaved, zb-h1, zb-v, or a "
                  "file that ends in .csv")
      ->type_name("NAME|FILE.csv");
  command
      .add_option("--stages", arguments.schedule.stages,
                  "Ranks of the pipeline (mesh.pp). A file knows it")
      ->check(program::whole_number(1));
  command
      .add_option("--micro-batches", arguments.schedule.micro_batches,
                  "Micro-batches of a step: train.global_batch / (mesh.dp * train.micro_batch). A "
                  "file knows it")
      ->check(program::whole_number(1));
  command
      .add_option("--chunks", arguments.schedule.chunks,
                  "Chunks of the model on each rank (mesh.chunks). Default: 2 for interleaved and "
                  "zb-v, else 1")
      ->check(program::whole_number(1));
}

void describe_run(CLI::App& command, Arguments& arguments) {
  command.add_option("RUN_FILE", arguments.run_file,
                     "Plan a run: what every rank will hold and need");
  program::add_repeatable_option(command, "--set", arguments.overrides,
                                 "Override a key of the run file", "KEY=VALUE");
  command
      .add_option("--ranks", arguments.ranks,
                  "Ranks of the run, as mpiexec or srun would start them. Default: what the mesh's "
                  "degrees make, if mesh.dp is one")
      ->check(program::whole_number(1));
  command
      .add_option("--rank", arguments.rank,
                  "Show one rank: its neighbours, layers, tokens and part of every tensor")
      ->check(program::whole_number(0));
  command
      .add_option("--gpu", arguments.gpu,
                  "Compute capability of the GPUs, which decides what cuDNN takes: 80 (A100), 90 "
                  "(H100, H200; the default), 100 (B200)")
      ->check(program::whole_number(80, 129));
}

void describe_output(CLI::App& command, Arguments& arguments) {
  command.add_option("--svg", arguments.svg, "Write the timeline as a picture")
      ->check(program::place_to_write())
      ->type_name("FILE");
  command
      .add_option("--trace", arguments.trace,
                  "Write the timeline as JSON for Perfetto (ui.perfetto.dev) and chrome://tracing")
      ->check(program::place_to_write())
      ->type_name("FILE");
  command
      .add_option(
          "--csv", arguments.csv,
          "Write the schedule as a table, to be edited and given to --schedule or mesh.schedule")
      ->check(program::place_to_write())
      ->type_name("FILE");
}

}  // namespace

void describe(CLI::App& command, Arguments& arguments) {
  describe_run(command, arguments);
  describe_schedule(command, arguments);
  command
      .add_option("--costs", arguments.costs,
                  "What a rank needs for a micro-batch, all its chunks together: forward, backward "
                  "for its input, backward for its weights. Any unit of time")
      ->delimiter(',')
      ->expected(3)
      ->type_name("F,B,W")
      ->default_str("1,1,1");
  command
      .add_option("--link-time", arguments.link_s,
                  "How long a message between two ranks takes, in the same unit")
      ->capture_default_str();
  describe_output(command, arguments);
  command.footer(
      "\nA RUN\n"
      "  With a run file nothing is trained and no data is read; the file is checked as for\n"
      "  training, and what each rank will take is counted by the code that will take it. The\n"
      "  table has a line per stage of the pipeline, of its first rank (another may hold a few\n"
      "  percent more where rows do not divide; --rank R tells): memory but for libraries, the\n"
      "  kernels' scratch and MPI's buffers, about 20 MiB. On GPUs 'other' has the scratch memory\n"
      "  of cuBLASLt and cuDNN too. --costs, --link-time and the files below work for it too.\n"
      "\nOUTPUT OF A SCHEDULE\n"
      "  step     time from the first action to the last, and the work of a rank in it\n"
      "  bubble   time of the step in which a rank computes nothing\n"
      "  waiting  the part of it between a rank's own first and last action\n"
      "  peak     activations held at once, in micro-batches of one rank (all its chunks)\n"
      "  slots    buffers for them: each chunk has its own, so that they can be a few more\n"
      "  Closed forms of the literature stand beside, where there are any for this case.\n"
      "\nSCHEDULE FILES\n"
      "  One line per rank; cells between commas are its actions in order: F3 is the forward pass\n"
      "  of micro-batch 3, B3 its backward pass, I3 and W3 the halves for input and weights, F3.1\n"
      "  that of chunk 1. Empty cells and comments (#) are left out; '# placement: vee' lays two\n"
      "  chunks as a V. Files that are incomplete or could deadlock are refused.\n"
      "\nEXAMPLES\n"
      "  fourfold plan run.toml --ranks 16384\n"
      "  fourfold plan run.toml --ranks 16384 --rank 9381 --set mesh.schedule=zb-v\n"
      "  fourfold plan --schedule zb-v --stages 8 --micro-batches 24 --svg zb-v.svg\n"
      "  fourfold plan --schedule interleaved --chunks 4 --stages 4 --micro-batches 16\n"
      "  fourfold plan --schedule 1f1b --stages 4 --micro-batches 8 --csv mine.csv\n"
      "  fourfold plan --schedule mine.csv --costs 1.0,1.2,0.9 --link-time 0.05\n"
      "\nEXIT CODES\n" +
      program::exit_codes_table({ExitCode::config, ExitCode::cannot_write}));
}

namespace {

void validate_run(const Arguments& arguments) {
  const schedule::ScheduleRequest& request = arguments.schedule;
  if (request.stages != 0 || request.micro_batches != 0 || request.chunks != 0) {
    refuse(
        "--stages, --micro-batches and --chunks belong to --schedule (a run file knows them); set "
        "mesh.pp, train.global_batch and mesh.chunks instead");
  }
  if (arguments.gpu && !device::has_own_memory) {
    refuse(
        "--gpu is for programs built for GPUs (this one is built for CPUs, and plans for them); "
        "leave it out, or take the other");
  }
}

void validate_schedule(const Arguments& arguments) {
  const schedule::ScheduleRequest& request = arguments.schedule;
  if (arguments.ranks != 0 || arguments.rank || arguments.gpu || !arguments.overrides.empty()) {
    refuse("--ranks, --rank, --gpu and --set belong to a run file (there is none); name one");
  }
  if (!arguments.from_file() && (request.stages == 0 || request.micro_batches == 0)) {
    refuse(format_message(
        "--schedule {} needs --stages and --micro-batches (only a file knows them); give both",
        request.name));
  }
  if (arguments.from_file() && request.chunks != 0) {
    refuse("--chunks cannot be given for a file (its cells name the chunks); leave it out");
  }
}

}  // namespace

void validate(const Arguments& arguments) {
  if (arguments.run_file.empty() == arguments.schedule.name.empty()) {
    refuse(
        "either a run file or --schedule says what to plan (not both); name a run file, or give "
        "--schedule with --stages and --micro-batches");
  }
  arguments.run_file.empty() ? validate_schedule(arguments) : validate_run(arguments);
  if (!std::ranges::all_of(arguments.costs, is_time) || arguments.pass_costs().sum_s() == 0) {
    refuse(
        format_message("--costs are three times from 0 to {:g}, not all 0 (of forward, "
                       "backward-input and backward-weight); write, say, 1,1,1",
                       most_time));
  }
  if (!is_time(arguments.link_s)) {
    refuse(format_message(
        "--link-time is not between 0 and {:g} (a message takes it); set it to, say, 0.1",
        most_time));
  }
}

}  // namespace fourfold::plan_program
