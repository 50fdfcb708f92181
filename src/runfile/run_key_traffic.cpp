// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <string>

namespace fourfold::runfile {
namespace {

using enum OnResume;

bool is_local(const RunConfig& config) {
  return config.mesh.dp_mode == DataParallelMode::local;
}

bool is_nesterov(const RunConfig& config) {
  return is_local(config) && config.optim.outer == OuterOptimizerKind::nesterov;
}

RunField compression_field() {
  RunField result;
  result.kind = ValueKind::text;
  result.choices = {"none", "bf16", "int8"};
  result.form = {"lowrank:R", "with R from 1 to 1024", [](const std::string& text) {
                   return gradient_compression_named(text).has_value();
                 }};
  result.get = [](const RunConfig& config) { return Value(name(config.mesh.dp_compress)); };
  result.set = [](RunConfig& config, const Value& value) {
    config.mesh.dp_compress = *gradient_compression_named(std::get<std::string>(value));
  };
  return result;
}

}  // namespace

std::vector<RunKey> traffic_keys() {
  return {
      {.table = "mesh",
       .name = "dp_compress",
       .field = compression_field(),
       .meaning =
           "How gradients of matrices travel over the dp x cp ranks: as f32 (none), in half or a "
           "quarter of the bytes (bf16; int8, with a scale for every 256), or as products of thin "
           "matrices of R columns (lowrank:R). What is left out is kept and added to the next "
           "gradients. It needs dp_reduce = \"step\". docs/traffic.md has the bytes."},
      {.table = "mesh",
       .name = "dp_mode",
       .field = named_field<DataParallelMode>({DataParallelMode::sync, DataParallelMode::local},
                                              &RunConfig::mesh, &MeshConfig::dp_mode),
       .meaning =
           "sync: the dp ranks make every update together. local: each of them (with its cp, "
           "tp and pp ranks a replica of its own) trains alone on its share of each global "
           "batch, and average_every updates later their weights meet (local SGD).",
       .on_resume = needs_allowance},
      {.table = "mesh",
       .name = "average_every",
       .field = field(&RunConfig::mesh, &MeshConfig::average_every),
       .unit = "updates",
       .meaning =
           "Updates that replicas make by themselves before their weights meet. A checkpoint "
           "is a meeting too.",
       .minimum = 1,
       .relevance = {"mesh.dp_mode = \"local\"", is_local},
       .on_resume = needs_allowance},
  };
}

std::vector<RunKey> outer_keys() {
  const Relevance nesterov{"mesh.dp_mode = \"local\" and optim.outer = \"nesterov\"", is_nesterov};
  return {
      {.table = "optim",
       .name = "outer",
       .field = named_field<OuterOptimizerKind>(
           {OuterOptimizerKind::average, OuterOptimizerKind::nesterov}, &RunConfig::optim,
           &OptimConfig::outer),
       .meaning =
           "What local replicas go on with: the average of their weights, or (nesterov, as in "
           "DiLoCo) what a step of SGD with Nesterov momentum makes of the difference to the "
           "last one.",
       .relevance = {"mesh.dp_mode = \"local\"", is_local},
       .on_resume = needs_allowance},
      {.table = "optim",
       .name = "outer_lr",
       .field = field(&RunConfig::optim, &OptimConfig::outer_lr),
       .meaning = "Learning rate of that step.",
       .minimum = 0,
       .maximum = 100,
       .above_minimum = true,
       .relevance = nesterov,
       .on_resume = needs_allowance},
      {.table = "optim",
       .name = "outer_momentum",
       .field = field(&RunConfig::optim, &OptimConfig::outer_momentum),
       .meaning = "Its momentum.",
       .minimum = 0,
       .maximum = 0.9999999,
       .relevance = nesterov,
       .on_resume = needs_allowance},
  };
}

}  // namespace fourfold::runfile
