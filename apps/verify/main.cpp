// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"
#include "report.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace {

using fourfold::ExitCode;
using fourfold::verify::Arguments;
using fourfold::verify::MeshRun;
using fourfold::verify::Verdict;
namespace train = fourfold::train;

void print_row(int width, const Verdict& verdict) {
  const train::MeshComparison& result = verdict.comparison;
  fmt::print("{:<{}}  {:<9}  {:<8}  {:>7.1e}  {:>9.1e}  {:>7.1e}  {}\n", verdict.mesh, width,
             result.same_initial_weights ? "same bits" : "DIFFER",
             result.ranks_agree ? "agree" : "DISAGREE", result.loss_error, result.gradient_error,
             result.weight_error, result.passed() ? "passed" : "FAILED");
  if (result.first_difference) {
    fmt::print("  {}\n", *result.first_difference);
  }
  std::fflush(stdout);
}

std::vector<double> losses_of(const train::MeshTrace& trace) {
  std::vector<double> losses;
  for (const train::StepTrace& step : trace.steps) {
    losses.push_back(step.loss);
  }
  return losses;
}

/// What the reference itself did wrong: ranks that disagree, weights that its gradients do not
/// make.
void require_sound(const train::MeshTrace& reference, const std::string& name,
                   const train::Tolerances& tolerances) {
  const train::MeshComparison itself = train::compare(reference, reference, tolerances);
  if (itself.passed()) {
    return;
  }
  if (itself.ranks_agree && itself.weight_error <= train::Tolerances{}.weight) {
    throw fourfold::UserError(
        ExitCode::usage,
        fmt::format("--weight-tolerance {:g} is below what f32 can keep to (the updates of the "
                    "reference --mesh {} themselves are off by {:.1e}) give at least {:.1e}",
                    tolerances.weight, name, itself.weight_error, 2 * itself.weight_error));
  }
  throw fourfold::Error(ExitCode::internal,
                        fmt::format("the reference --mesh {}: {}", name, *itself.first_difference));
}

/// What is not finite has nothing to compare with.
void require_finite(const train::MeshTrace& reference, const std::string& name) {
  std::size_t skipped = 0;
  for (std::size_t step = 0; step < reference.steps.size(); ++step) {
    const train::StepTrace& trace = reference.steps[step];
    skipped += trace.fate == train::StepFate::skipped ? 1 : 0;
    if (trace.fate == train::StepFate::lost || !std::isfinite(trace.loss)) {
      throw fourfold::UserError(
          ExitCode::data_corrupt,
          fmt::format(
              "the reference --mesh {} has loss {} and gradient norm {} at step {} (training "
              "has diverged: there is nothing to compare) lower optim.lr{}",
              name, std::fabs(trace.loss), std::fabs(trace.grad_norm), step + 1,
              trace.loss_scale > 1 ? " or train.loss_scale" : ""));
    }
  }
  if (skipped == reference.steps.size()) {
    throw fourfold::UserError(
        ExitCode::config,
        fmt::format("all {} steps of the reference overflow f16 and are skipped (nothing is left "
                    "to compare) lower train.loss_scale_initial, or give more --steps",
                    reference.steps.size()));
  }
}

ExitCode verify(const Arguments& arguments) {
  if (arguments.meshes.size() < 2) {
    throw fourfold::UserError(ExitCode::usage,
                              "one --mesh is nothing to compare; give the reference first, then "
                              "others: --mesh dp=1 --mesh dp=2,tp=2");
  }
  std::vector<MeshRun> runs;
  std::size_t width = 0;
  for (const std::string& text : arguments.meshes) {
    runs.push_back(fourfold::verify::read_mesh(arguments, text));
    width = std::max(width, text.size());
  }
  const train::Tolerances tolerances = tolerances_of(arguments, runs);
  fourfold::device::take_device({});  // for all ranks, which are threads here
  const fourfold::kernels::Runtime kernels;
  const train::MeshTrace reference =
      train::trace_mesh(runs[0].config, runs[0].shape, arguments.steps);
  require_finite(reference, runs[0].name);
  require_sound(reference, runs[0].name, tolerances);
  const std::vector<double> losses = losses_of(reference);
  if (!arguments.json) {
    fmt::print("reference {}: loss {:.6f} at step 1, {:.6f} at step {}\n\n", runs[0].name,
               losses.front(), losses.back(), losses.size());
    fmt::print("{:<{}}  {:<9}  {:<8}  {:<7}  {:<9}  {:<7}\n", "mesh", width, "initial", "replicas",
               "loss", "gradients", "weights");
  }
  std::vector<Verdict> verdicts;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const train::MeshTrace trace =
        train::trace_mesh(runs[i].config, runs[i].shape, arguments.steps);
    verdicts.push_back({runs[i].name, train::compare(reference, trace, tolerances)});
    if (!arguments.json) {
      print_row(static_cast<int>(width), verdicts.back());
    }
  }
  if (arguments.json) {
    fmt::print("{}\n", fourfold::verify::to_json(arguments, tolerances, losses, verdicts));
  }
  const bool all_passed = std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.comparison.passed();
  });
  return all_passed ? ExitCode::finished : ExitCode::differs;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Trains a few steps of a run on several meshes and compares them: every rank is a thread of "
      "this process; nothing is left behind. Names the first tensor that is not what the reference "
      "has.",
      "fourfold verify"};
  Arguments arguments;
  fourfold::verify::describe(command, arguments);
  return fourfold::program::run("fourfold verify", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    return verify(arguments);
  });
}
