// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/progress_mode.hpp>
#include <fourfold/train/mesh_verification.hpp>

#include <CLI/CLI.hpp>

#include <optional>
#include <string>
#include <vector>

namespace fourfold::verify {

struct Arguments {
  std::string run_file;
  std::vector<std::string> meshes;     ///< as written; the first one is the reference
  std::vector<std::string> overrides;  ///< --set, for all of them
  int steps = 5;
  std::optional<double> loss_tolerance;  ///< each: train::tolerances_for, if not given
  std::optional<double> gradient_tolerance;
  std::optional<double> rounding_tolerance;
  std::optional<double> weight_tolerance;
  std::optional<double> product_tolerance;
  ProgressMode progress = ProgressMode::automatic;
  bool json = false;
};

void describe(CLI::App& command, Arguments& arguments);

/// Reads "dp=2,tp=2,pp=2,schedule=1f1b": keys of [mesh], or any key with its table in front
/// ("train.micro_batch=1"). An axis that is not named has degree 1.
/// Its warnings and notes are logged with the first mesh alone: those of the others are mostly the
/// same.
/// @return named as it is written
/// @throws UserError (config) as the run file, with the mesh's text in front
train::RunOnMesh read_mesh(const Arguments& arguments, const std::string& text);

/// What `run` is to keep to: what is written, else what is usual in its precision.
train::Tolerances tolerances_of(const Arguments& arguments, const train::RunOnMesh& run);

/// One line of the table.
struct Verdict {
  std::string mesh;
  train::Tolerances tolerances;
  train::MeshComparison comparison;
};

/// One JSON object; numbers to full precision.
std::string to_json(const Arguments& arguments, const std::vector<double>& reference_losses,
                    const std::vector<Verdict>& verdicts);

}  // namespace fourfold::verify
