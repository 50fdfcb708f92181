// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using fourfold::ExitCode;
using fourfold::verify::Arguments;
using fourfold::verify::Verdict;
namespace train = fourfold::train;

void print_head(std::size_t width, const std::string& reference,
                const std::vector<double>& losses) {
  fourfold::program::print("reference {}: loss {:.6f} at step 1, {:.6f} at step {}\n\n", reference,
                           losses.front(), losses.back(), losses.size());
  fourfold::program::print("{:<{}}  {:<9}  {:<8}  {:<8}  {:<7}  {:<9}  {:<8}  {:<7}\n", "mesh",
                           width, "initial", "replicas", "products", "loss", "gradients",
                           "rounding", "weights");
}

void print_row(std::size_t width, const Verdict& verdict) {
  const train::MeshComparison& result = verdict.comparison;
  fourfold::program::print(
      "{:<{}}  {:<9}  {:<8}  {:>7.1f}x  {:>7.1e}  {:>9.1e}  {:>7.1f}x  {:>7.1e}  {}\n",
      verdict.mesh, width, result.same_initial_weights ? "same bits" : "DIFFER",
      result.ranks_agree ? "agree" : "DISAGREE", result.largest.product, result.largest.loss,
      result.largest.gradient, result.largest.rounding, result.largest.weight,
      result.passed() ? "passed" : "FAILED");
  if (result.first_difference) {
    fourfold::program::print("  {}\n", *result.first_difference);
  }
  if (!result.differing_steps.empty()) {
    fourfold::program::print("  steps that differ: {} of {}\n", result.differing_steps.size(),
                             result.steps);
  }
  if (result.skipped_steps > 0) {
    fourfold::program::print(
        "  not proven: the gradients of {} of {} steps, which overflow f16 on both\n",
        result.skipped_steps, result.steps);
  }
  std::fflush(stdout);
}

/// What the reference itself did wrong: products, ranks that disagree, weights that its gradients
/// do not make.
void require_sound(const train::MeshComparison& itself, const std::string& name,
                   const train::Tolerances& tolerances) {
  if (itself.passed()) {
    return;
  }
  if (itself.largest.product > tolerances.product) {
    throw fourfold::UserError(
        ExitCode::differs,
        fourfold::format_message("the reference --mesh {}: {} (a product of this machine is wrong, "
                                 "or --product-tolerance {:g} too small: nothing can be compared "
                                 "with it); run fourfold doctor, and this on another machine",
                                 name, *itself.first_difference, tolerances.product));
  }
  if (itself.ranks_agree && itself.largest.weight <= train::Tolerances{}.weight) {
    throw fourfold::UserError(
        ExitCode::usage,
        fourfold::format_message(
            "--weight-tolerance {:g} is below what f32 can keep to (the updates of the reference "
            "--mesh {} themselves are off by {:.1e}); give at least {:.1e}",
            tolerances.weight, name, itself.largest.weight, 2 * itself.largest.weight));
  }
  throw fourfold::Error(
      ExitCode::internal,
      fourfold::format_message("the reference --mesh {}: {}", name, *itself.first_difference));
}

ExitCode verify(const Arguments& arguments) {
  if (arguments.meshes.size() < 2) {
    throw fourfold::UserError(ExitCode::usage,
                              "one --mesh is nothing to compare; give the reference first, then "
                              "others: --mesh dp=1 --mesh dp=2,tp=2");
  }
  std::vector<train::RunOnMesh> runs;
  std::size_t width = 0;
  for (const std::string& text : arguments.meshes) {
    runs.push_back(fourfold::verify::read_mesh(arguments, text));
    width = std::max(width, text.size());
  }
  fourfold::device::take_device({});  // for all ranks, which are threads here
  const fourfold::kernels::Runtime kernels;
  const train::RunOnMesh& reference = runs[0];
  const train::Tolerances of_reference = tolerances_of(arguments, reference);
  // Steps of the reference by itself, and of each mesh with the reference after it.
  fourfold::program::Progress progress(arguments.progress, "compared", "steps");
  const std::int64_t all_steps = (2 * std::ssize(runs) - 1) * arguments.steps;
  std::int64_t done_steps = 0;
  const auto show_steps_of = [&](const std::string& name) {
    return [&, name](bool /*of_reference*/, std::int64_t step) {
      progress.show(done_steps++, all_steps, fmt::format("{}, step {}", name, step + 1));
    };
  };
  const train::MeshComparison itself = train::train_reference(
      reference, arguments.steps, of_reference, show_steps_of("reference " + reference.name));
  progress.finish();
  require_sound(itself, reference.name, of_reference);
  if (!arguments.json) {
    print_head(width, reference.name, itself.losses);
  }
  std::vector<Verdict> verdicts;
  for (std::size_t i = 1; i < runs.size(); ++i) {
    const train::Tolerances tolerances = tolerances_of(arguments, runs[i]);
    verdicts.push_back({runs[i].name, tolerances,
                        train::compare_meshes(reference, runs[i], arguments.steps, tolerances,
                                              show_steps_of("mesh " + runs[i].name))});
    progress.finish();
    if (!arguments.json) {
      print_row(width, verdicts.back());
    }
  }
  if (const std::int64_t context = reference.config.model.context;
      !arguments.json && context > train::most_attention_rows) {
    fourfold::program::print(
        "\nnot proven: all of the attention to {} tokens; {} queries and keys of each head and "
        "call, drawn at random, were looked at\n",
        context, train::most_attention_rows);
  }
  if (arguments.json) {
    fourfold::program::print_text(fourfold::verify::to_json(arguments, itself.losses, verdicts) +
                                  "\n");
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
  fourfold::set_remedies(fourfold::runfile::run_remedies());
  return fourfold::program::run("fourfold verify", [&] {
    if (const auto end =
            fourfold::program::parse(command, argc, argv, fourfold::runfile::keys_called)) {
      return *end;
    }
    fourfold::comm::require_single_process("fourfold verify");
    fourfold::program::enable_verbose_log();
    return verify(arguments);
  });
}
