// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/train/cuda_graphs.hpp>
#include <fourfold/train/mesh_layout.hpp>
#include <fourfold/train/training_data.hpp>

namespace fourfold::train {
namespace {

/// Empty: they could be used.
std::string_view obstacle(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                          const parallel::ZeroOptions& zero, bool has_devices) {
  return !has_devices                         ? "this build computes on CPUs"
         : mesh.tp * mesh.cp * mesh.pp > 1    ? "ranks talk within a micro-batch (mesh)"
         : config.mesh.chunks > 1             ? "the model is in several pieces (mesh.chunks)"
         : zero.gather_in_turn                ? "weights are gathered (mesh.zero = 3)"
         : zero.reduce_each_micro_batch       ? "gradients are summed each time (mesh.dp_reduce)"
         : config.model.dropout > 0           ? "every step drops others (model.dropout)"
         : config.offload.activations_on_host ? "activations are moved (offload.activations)"
         : batch_plan(config, mesh).accumulation_steps() < 2
             ? "the only micro-batch of a step sends its gradients away"
             : std::string_view();
}

}  // namespace

GraphUse graph_use(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                   bool has_devices) {
  using runfile::CudaGraphs;
  const CudaGraphs wanted = config.train.cuda_graphs;
  const std::int64_t tokens = config.train.micro_batch * config.model.context / mesh.cp;
  if (wanted == CudaGraphs::never ||
      (wanted == CudaGraphs::automatic && tokens > most_tokens_for_graphs)) {
    return {};
  }
  const parallel::ZeroOptions zero = zero_options(config, mesh);
  const std::string_view why_not = obstacle(config, mesh, zero, has_devices);
  if (!why_not.empty()) {
    return {.why_not = wanted == CudaGraphs::always ? why_not : std::string_view()};
  }
  return {.graphs = zero.shard_ranks > 1 ? parallel::GraphsOf::partial_but_first
                                         : parallel::GraphsOf::partial};
}

}  // namespace fourfold::train
