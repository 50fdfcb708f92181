// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/plan/timeline_svg.hpp>
#include <fourfold/plan/timeline_trace.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/run_key.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/telemetry/own_files.hpp>

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <span>
#include <utility>

namespace {

using fourfold::ExitCode;
using fourfold::plan_program::Arguments;
namespace schedule = fourfold::schedule;
namespace plan = fourfold::plan;

std::string content_of(const std::string& path) {
  const auto text = schedule::schedule_file_text(path);
  if (!text) {
    throw fourfold::UserError(
        ExitCode::config,
        fourfold::format_message(
            "--schedule {} cannot be read (is it a file, and yours to read?); check the name",
            path));
  }
  return *text;
}

/// What is wrong is said in the keys of a run file: there is none here.
schedule::Schedule schedule_of(const Arguments& arguments) {
  const schedule::ScheduleRequest& request = arguments.schedule;
  const std::string text = arguments.from_file() ? content_of(request.name) : std::string();
  try {
    return arguments.from_file() ? schedule::read_schedule_csv(text, request.name, request.stages,
                                                               request.micro_batches)
                                 : schedule::make_schedule(request);
  } catch (const fourfold::UserError& error) {
    throw fourfold::UserError(
        error.code(), fourfold::format_message(
                          "{} [here mesh.schedule is --schedule, mesh.pp --stages, mesh.chunks "
                          "--chunks; train.global_batch decides about --micro-batches]",
                          error.what()));
  }
}

/// How an older file of ours begins, which may be replaced.
constexpr fourfold::io::OwnFile own_svg{.mark = plan::timeline_svg_mark,
                                        .maker = "fourfold plan --svg",
                                        .is_older = plan::is_older_timeline_svg};
constexpr fourfold::io::OwnFile own_trace{.mark = plan::timeline_trace_mark,
                                          .maker = "fourfold plan --trace",
                                          .is_older = plan::is_older_timeline_trace};
constexpr fourfold::io::OwnFile own_csv{.mark = schedule::schedule_csv_mark,
                                        .maker = "fourfold plan --csv",
                                        .is_unchanged = fourfold::io::sum_holds};

/// Before anything is written: all or none.
void refuse_to_replace_others(const Arguments& arguments) {
  const std::array<std::filesystem::path, 2> inputs{
      arguments.run_file, arguments.from_file() ? arguments.schedule.name : std::string()};
  for (const auto& [path, own] :
       {std::pair(arguments.svg, own_svg), std::pair(arguments.trace, own_trace),
        std::pair(arguments.csv, own_csv)}) {
    if (!path.empty()) {
      fourfold::io::refuse_place_in_step(path);
      fourfold::telemetry::refuse_place_of_run(path);
      fourfold::io::refuse_input_as_output(path, inputs);
      fourfold::io::refuse_foreign_file(path, own);
    }
  }
}

void write(const std::string& path, const std::string& text, const fourfold::io::OwnFile& own) {
  fourfold::io::AtomicFile file(fourfold::io::followed(path));
  file.write(text);
  file.publish([&] { fourfold::io::refuse_foreign_file(path, own); });  // once more
  fourfold::program::print("wrote {}\n", path);
}

/// The schedule, priced: to stdout, and to the files that were asked for.
void price(const Arguments& arguments, const schedule::Schedule& schedule) {
  schedule::Timeline timeline = plan::simulate(
      schedule, plan::even_costs(schedule, arguments.pass_costs(), arguments.link_s));
  timeline.name = "planned";
  fourfold::program::print_text(report(arguments, schedule, timeline));
  const std::span<const schedule::Timeline> timelines(&timeline, 1);
  if (!arguments.svg.empty()) {
    write(arguments.svg,
          plan::timeline_svg(timelines, {.title = fourfold::plan_program::title(schedule),
                                         .subtitle = subtitle(arguments, schedule, timeline),
                                         .unit = plan::Drawing::Unit::own}),
          own_svg);
  }
  if (!arguments.trace.empty()) {
    write(arguments.trace, plan::timeline_trace(timelines), own_trace);
  }
  if (!arguments.csv.empty()) {
    write(arguments.csv, fourfold::io::with_sum(schedule::schedule_csv(schedule)), own_csv);
  }
}

ExitCode run_plan(const Arguments& arguments) {
  validate(arguments);
  fourfold::io::refuse_one_place_twice(
      std::array{fourfold::io::NamedOutput{"--svg", arguments.svg},
                 fourfold::io::NamedOutput{"--trace", arguments.trace},
                 fourfold::io::NamedOutput{"--csv", arguments.csv}});
  refuse_to_replace_others(arguments);
  if (arguments.run_file.empty()) {
    price(arguments, schedule_of(arguments));
    return ExitCode::finished;
  }
  const fourfold::plan_program::PlannedRun run = fourfold::plan_program::plan_run(arguments);
  for (const std::string& path : {arguments.svg, arguments.trace, arguments.csv}) {
    fourfold::io::refuse_input_as_output(
        path, std::array<std::filesystem::path, 1>{run.config.mesh.schedule});
  }
  fourfold::program::print_text(run_report(run) + "\n");
  if (arguments.rank) {
    fourfold::program::print_text(rank_report(run, *arguments.rank) + "\n");
  }
  const schedule::Schedule& schedule = run.layout.schedule;
  Arguments named = arguments;  // so that closed forms are found by the schedule's name
  named.schedule = {.name = schedule.name,
                    .stages = schedule.stages,
                    .micro_batches = schedule.micro_batches,
                    .chunks = schedule.chunks};
  price(named, schedule);
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Plans before anything runs: what each rank of a run will hold and need in memory, and what "
      "its pipeline's schedule costs (how much of a step is bubble, how many activations a rank "
      "holds), with a picture. Needs neither ranks nor MPI nor data.",
      "fourfold plan"};
  Arguments arguments;
  describe(command, arguments);
  return fourfold::program::run("fourfold plan", [&] {
    if (const auto end =
            fourfold::program::parse(command, argc, argv, fourfold::runfile::keys_called)) {
      return *end;
    }
    fourfold::program::enable_verbose_log();
    return run_plan(arguments);
  });
}
