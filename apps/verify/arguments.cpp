// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/state_tier.hpp>

#include <algorithm>
#include <iterator>
#include <utility>

namespace fourfold::verify {
namespace {

const char* const meshes_help = R"(
MESHES
  dp=2,tp=2              keys of [mesh]; an axis that is not named has degree 1
  dp=4,train.micro_batch=1    any other key of the run file, with its table in front
  The ranks of a mesh are threads of this process, 256 at most. The first mesh is the reference:
  dp=1 is the run without any parallelism. Each of the others is trained for --steps steps, and the
  reference repeats every step from the weights that the mesh begins it with, in the precision of
  the mesh. So no error grows from step to step, and step 20 proves as much as step 1. Memory: one
  mesh at a time, the reference twice, and 80 bytes per parameter, however many steps.

WHAT IS COMPARED
  the bits of the initial weights, on all ranks that hold them
  per step: loss, global gradient norm and the gradient of every logical tensor (relative, L2)
  per step: the gradient of every tensor, and of every row and column of every matrix, in units of
    what rounding makes there: the reference repeats the step once more and rounds in other ways (in
    f32 from weights moved to neighbouring numbers; in 16 bits with activations in f32)
  per step: the new weights of every logical tensor with what the reference's optimizer, written
    out plainly, makes of this mesh's own gradients and old weights (as a share of the update, L2)
  that replicas have the same bits on all ranks
  per step: every matrix product of every rank, of the mesh and of the reference, where it is made:
    sums of its rows and columns with random signs, and rows of attention and of its gradients, with
    what its operands make of them in f64, in units of what rounding makes there

WHAT IS NOT PROVEN
  what is no product (norms, activations, sums over ranks) and changes no gradient by more than
  rounding. In 16 bits rounding hides more; prove a mesh with --set train.precision=f32 too
  of attention to more than 512 tokens all rows: 512 queries and 512 keys, drawn at random, are looked at
  gradients of steps that f16 skips on both meshes; how many there were is printed
  what the reference and the mesh do wrong alike, products apart: they run the same kernels

EXAMPLES
  fourfold verify run.toml --mesh dp=1 --mesh dp=2,tp=2
  fourfold verify run.toml --mesh dp=1 --mesh dp=4,train.micro_batch=1 --steps 20 --json
)";

/// Ranks are threads here, with a whole program's memory each.
void require_few_ranks(const comm::MeshShape& mesh) {
  constexpr double most_ranks = 256;
  double ranks = 1;  // which int64 may not hold
  for (const comm::Axis axis : comm::all_axes) {
    ranks *= mesh[axis];
  }
  if (ranks > most_ranks) {
    throw UserError(ExitCode::config,
                    format_message("{} is {:.0f} ranks (each is a thread of this process, and more "
                                   "than {:.0f} are too many); use smaller degrees",
                                   product_text(mesh), ranks, most_ranks));
  }
}

/// What changes a step by more than rounding, on purpose.
void require_the_same_steps(const train::ResolvedRun& run) {
  const runfile::MeshConfig& options = run.config.mesh;
  if (run.trains_locally) {
    throw UserError(ExitCode::config,
                    "mesh.dp_mode = \"local\" is no mesh to compare (its replicas make other steps "
                    "than one rank does); leave it out: --set mesh.dp_mode=sync");
  }
  if (options.dp_compress != parallel::GradientCompression{} && run.mesh.data_plane_ranks() > 1) {
    throw UserError(
        ExitCode::config,
        format_message("mesh.dp_compress = \"{}\" is no mesh to compare (it changes every step by "
                       "more than rounding); leave it out: --set mesh.dp_compress=none",
                       name(options.dp_compress)));
  }
}

}  // namespace

void describe(CLI::App& command, Arguments& arguments) {
  const auto positive = program::number_between(0, 1e30);
  command.add_option("RUN_FILE", arguments.run_file, "The run file (TOML)")->required();
  program::add_repeatable_option(command, "--mesh", arguments.meshes,
                                 "A mesh to run on; give at least two, the reference first", "MESH")
      ->required();
  program::add_repeatable_option(command, "--set", arguments.overrides,
                                 "Override a key of the run file for all meshes", "KEY=VALUE");
  command.add_option("--steps", arguments.steps, "Steps to train on each mesh")
      ->capture_default_str()
      ->check(program::whole_number(1, 1'000'000));
  command
      .add_option("--loss-tolerance", arguments.loss_tolerance,
                  "The largest relative error of a loss. Default: 1e-5; 5e-4 with 16 bits")
      ->check(positive);
  command
      .add_option("--gradient-tolerance", arguments.gradient_tolerance,
                  "The same of a tensor's gradient, and of the gradient norm. Default: 1e-4; 0.1 "
                  "with 16 bits")
      ->check(positive);
  command
      .add_option("--rounding-tolerance", arguments.rounding_tolerance,
                  "The largest error of the gradient of a tensor, row or column, as a multiple of "
                  "what rounding makes there. Default: 300; 16 with 16 bits")
      ->check(positive);
  command
      .add_option("--weight-tolerance", arguments.weight_tolerance,
                  "The largest error of a tensor's weights after a step, as a share of the update. "
                  "Default: 1e-4")
      ->check(positive);
  command
      .add_option("--product-tolerance", arguments.product_tolerance,
                  "The largest error of a matrix product where it is made, as a multiple of what "
                  "rounding makes there. Default: 8")
      ->check(positive);
  program::add_progress_option(command, arguments.progress);
  command.add_flag("--json", arguments.json, "Print one JSON object, for programs to read");
  command.footer(
      std::string(meshes_help) + "\nEXIT CODES\n" +
      program::exit_codes_table({ExitCode::differs, ExitCode::data_corrupt, ExitCode::cannot_write,
                                 ExitCode::node_fault, ExitCode::config}));
}

/// Before the reference is trained for a mesh that cannot be.
void require_offload_path(const runfile::OffloadConfig& offload) {
  device::Arena nothing;
  const train::StateTier tier(offload, nothing);
}

train::RunOnMesh read_mesh(const Arguments& arguments, const std::string& text) {
  std::vector<std::string> overrides = arguments.overrides;
  try {
    std::ranges::move(runfile::mesh_overrides(text), std::back_inserter(overrides));
    const runfile::EffectiveConfig effective = train::load_run(arguments.run_file, overrides);
    if (text == arguments.meshes.front()) {
      runfile::log_remarks(effective);
    }
    runfile::validate_data(effective.config, effective.origins);
    require_offload_path(effective.config.offload);
    const comm::MeshShape& shape = effective.config.mesh.shape;
    if (shape.dp == 0) {
      throw UserError(ExitCode::config,
                      "mesh.dp = \"auto\" says nothing here (there is no launcher); give a number");
    }
    require_few_ranks(shape);
    train::ResolvedRun run = train::resolve_run(effective, shape.ranks());
    require_the_same_steps(run);
    return {std::move(run), text};
  } catch (const UserError& error) {
    throw UserError(error.code(), format_message("--mesh {}: {}", text, error.what()));
  }
}

train::Tolerances tolerances_of(const Arguments& arguments, const train::RunOnMesh& run) {
  const train::Tolerances usual = train::tolerances_for(run.config);
  return {.loss = arguments.loss_tolerance.value_or(usual.loss),
          .gradient = arguments.gradient_tolerance.value_or(usual.gradient),
          .rounding = arguments.rounding_tolerance.value_or(usual.rounding),
          .least_gradient = usual.least_gradient,
          .weight = arguments.weight_tolerance.value_or(usual.weight),
          .product = arguments.product_tolerance.value_or(usual.product)};
}

}  // namespace fourfold::verify
