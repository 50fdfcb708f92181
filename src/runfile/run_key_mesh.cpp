// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <fmt/format.h>

#include <string>

namespace fourfold::runfile {
namespace {

using enum OnResume;

RunField member(auto path) {
  return field(&RunConfig::mesh, path);
}

RunField degree(auto axis) {
  return field(&RunConfig::mesh, &MeshConfig::shape, axis);
}

RunField compression_field() {
  RunField result = text_field(
      names_in(named_values<parallel::Compression>),
      [](const RunConfig& config) { return name(config.mesh.dp_compress); },
      [](RunConfig& config, const std::string& text) {
        config.mesh.dp_compress = *parallel::gradient_compression_named(text);
      });
  const auto form = name(parallel::Compression::low_rank);
  std::erase(result.choices, form);
  result.form = fmt::format("{}R", form);
  result.form_condition = "with R from 1 to 1024";
  result.has_form = [](const std::string& text) {
    return parallel::gradient_compression_named(text).has_value();
  };
  return result;
}

RunField algorithm_field() {
  RunField result = named_field(&RunConfig::mesh, &MeshConfig::host_collectives);
  std::erase(result.choices, name(comm::Algorithm::shared));  // automatic takes it where it can
  return result;
}

}  // namespace

std::vector<RunKey> mesh_keys() {
  const Relevance in_pipelines{"mesh.pp > 1 or mesh.chunks > 1", [](const RunConfig& config) {
                                 return config.mesh.shape.pp > 1 || config.mesh.chunks > 1;
                               }};
  const Relevance sharded{"mesh.zero > 0",
                          [](const RunConfig& config) { return config.mesh.zero > 0; }};
  const Relevance is_local{"mesh.dp_mode = \"local\"", [](const RunConfig& config) {
                             return config.mesh.dp_mode == DataParallelMode::local;
                           }};
  return {
      {.name = "dp",
       .field = degree(&comm::MeshShape::dp),
       .unit = "ranks",
       .meaning =
           "Data-parallel degree: each of these ranks trains on its share of the global batch.",
       .minimum = 1,
       .maximum = 1048576,
       .automatic = "the ranks that pp, cp and tp leave"},
      {.name = "pp",
       .field = degree(&comm::MeshShape::pp),
       .unit = "ranks",
       .meaning = "Pipeline-parallel degree: each of these ranks holds some of the layers.",
       .minimum = 1,
       .maximum = 65536},
      {.name = "cp",
       .field = degree(&comm::MeshShape::cp),
       .unit = "ranks",
       .meaning = "Context-parallel degree: each of these ranks holds 1/cp of the tokens of every "
                  "sequence. 2 x cp must divide model.context.",
       .minimum = 1,
       .maximum = 65536},
      {.name = "tp",
       .field = degree(&comm::MeshShape::tp),
       .unit = "ranks",
       .meaning = "Tensor-parallel degree: each of these ranks holds a slice of every matrix. It "
                  "must divide model.heads, and divide or be a multiple of model.kv_heads.",
       .minimum = 1,
       .maximum = 65536},
      // How the tp and cp axes share a sequence.
      {.name = "sequence_parallel",
       .field = member(&MeshConfig::sequence_parallel),
       .meaning = "Ranks of the tp axis also share the rows of norms, dropout and residuals: less "
                  "memory, a few gathers more beside the backward pass.",
       .relevance = {"mesh.tp > 1",
                     [](const RunConfig& config) { return config.mesh.shape.tp > 1; }}},
      {.name = "context_mode",
       .field = named_field(&RunConfig::mesh, &MeshConfig::context_mode),
       .meaning =
           "How attention meets the other ranks' tokens: keys and values travel around the ranks "
           "while they compute (ring), heads are dealt to the ranks (ulysses: needs at least cp "
           "heads per rank of the tp axis), or every rank gathers all keys and values (allgather).",
       .relevance = {"mesh.cp > 1",
                     [](const RunConfig& config) { return config.mesh.shape.cp > 1; }}},
      {.name = "schedule",
       .field = member(&MeshConfig::schedule),
       .path_after = "",
       .meaning =
           "In which order a pipeline's ranks run micro-batches: naive, gpipe, 1f1b, interleaved, "
           "zb-h1, zb-v, or a CSV file (`fourfold plan --csv` writes one to start from).",
       .relevance = in_pipelines},
      {.name = "chunks",
       .field = member(&MeshConfig::chunks),
       .meaning = "Pieces of the model per pipeline rank. More of them make the bubble shorter and "
                  "the messages more.",
       .minimum = 1,
       .maximum = 1024,
       .automatic = "2 for interleaved and zb-v, else 1"},
      {.name = "stage_layers",
       .field = member(&MeshConfig::stage_layers),
       .unit = "layers",
       .meaning = "Layers of each of the pp x chunks pieces of the model, from the first. Empty: "
                  "by cost, the head counted.",
       .minimum = 0,
       .maximum = 1e9,
       .relevance = in_pipelines},
      {.name = "zero",
       .field = member(&MeshConfig::zero),
       .meaning = "ZeRO stage: what the dp x cp ranks with the same parameters share out rather "
                  "than each hold: 1 the optimizer's state, 2 gradients too, 3 weights too.",
       .minimum = 0,
       .maximum = 3},
      {.name = "zero_group",
       .field = member(&MeshConfig::zero_group),
       .unit = "ranks",
       .meaning = "Ranks that share them out; groups of so many neighbours are replicas of each "
                  "other (hybrid sharding). It must divide dp x cp.",
       .minimum = 1,
       .maximum = 65536,
       .automatic = "dp x cp",
       .relevance = sharded},
      {.name = "zero3_keep",
       .field = named_field(&RunConfig::mesh, &MeshConfig::zero3_keep),
       .meaning = "How long zero = 3 keeps the weights it gathers: until the next block wants the "
                  "memory, or for the step, with the memory of zero = 2 and a gather per step.",
       .relevance = {"mesh.zero = 3",
                     [](const RunConfig& config) { return config.mesh.zero == 3; }}},
      {.name = "tile_linear",
       .field = member(&MeshConfig::tile_linear),
       .meaning = "Tiles of rows in which zero = 3 gathers each matrix, uses it and reduces its "
                  "gradient, one after the other, so that the largest layer need not be in memory "
                  "whole. A matrix with fewer rows has as many tiles; tiles of few rows share out "
                  "badly among many ranks. docs/memory.md has bytes and times.",
       .minimum = 1,
       .maximum = 64,
       .relevance = {"mesh.zero = 3 and mesh.zero3_keep = \"micro_batch\"",
                     [](const RunConfig& config) {
                       return config.mesh.zero == 3 &&
                              config.mesh.zero3_keep == ZeroKeep::micro_batch;
                     }}},
      {.name = "dp_reduce",
       .field = named_field(&RunConfig::mesh, &MeshConfig::dp_reduce),
       .meaning = "When gradients are summed over the ranks: once per step, held whole until then, "
                  "or after every micro-batch, so that blocks need memory for theirs only in turn. "
                  "auto: micro_batch for zero = 2 and 3, else step. With the same setting zero "
                  "changes no bits (between CPUs; NCCL promises that of a mesh, not across them)."},
      {.name = "dp_bucket_mb",
       .field = member(&MeshConfig::dp_bucket_mb),
       .unit = "MB (10^6 bytes)",
       .meaning = "Gradients are summed over the data-parallel ranks in buckets of this size while "
                  "the backward pass goes on.",
       .minimum = 0,
       .maximum = 1e6,
       .above_minimum = true},
      {.name = "host_collectives",
       .field = algorithm_field(),
       .meaning =
           "How ranks on CPUs add up and gather: through memory they share where all of them are "
           "on one machine, else directly (auto), by messages from each to each (direct), round a "
           "ring, or up and down a tree. All but tree give the same bits."},
      {.name = "share_devices",
       .field = member(&MeshConfig::share_devices),
       .meaning = "Lets several ranks take the same GPU, to try a mesh out where there are fewer "
                  "GPUs than ranks: slow, and NCCL does not promise that it works."},
      // Less traffic between the ranks of the dp axis.
      {.name = "dp_compress",
       .field = compression_field(),
       .meaning =
           "How gradients of matrices travel over the dp x cp ranks: as f32 (none), in half or a "
           "quarter of the bytes (bf16; int8, with a scale for every 256), or as products of thin "
           "matrices of R columns (lowrank:R). What is left out is kept and added to the next "
           "gradients. It needs dp_reduce = \"step\". docs/traffic.md has the bytes."},
      {.name = "dp_mode",
       .field = named_field(&RunConfig::mesh, &MeshConfig::dp_mode),
       .meaning = "sync: the dp ranks make every update together. local: each of them (with its "
                  "cp, tp and pp ranks a replica of its own) trains alone on its share of each "
                  "global batch, and average_every updates later their weights meet (local SGD).",
       .on_resume = needs_allowance},
      {.name = "average_every",
       .field = member(&MeshConfig::average_every),
       .unit = "updates",
       .meaning = "Updates that replicas make by themselves before their weights meet. A "
                  "checkpoint is a meeting too.",
       .minimum = 1,
       .relevance = is_local,
       .on_resume = needs_allowance},
  };
}

}  // namespace fourfold::runfile
