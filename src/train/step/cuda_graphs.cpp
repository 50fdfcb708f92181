// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/train/cuda_graphs.hpp>

namespace fourfold::train {
namespace {

/// Empty: they could be used.
std::string_view obstacle(const ResolvedRun& run, bool has_devices) {
  const comm::MeshShape& mesh = run.mesh;
  return !has_devices                       ? "this build computes on CPUs"
         : mesh.tp * mesh.cp * mesh.pp > 1  ? "ranks talk within a micro-batch (mesh)"
         : run.config.mesh.chunks > 1       ? "the model is in several pieces (mesh.chunks)"
         : run.zero.gather_in_turn          ? "weights are gathered (mesh.zero = 3)"
         : run.zero.reduce_each_micro_batch ? "gradients are summed each time (mesh.dp_reduce)"
         : run.config.model.dropout > 0     ? "every step drops others (model.dropout)"
         : run.config.offload.activations_on_host ? "activations are moved (offload.activations)"
         : run.batches.accumulation_steps() < 2
             ? "the only micro-batch of a step sends its gradients away"
             : std::string_view();
}

}  // namespace

GraphUse graph_use(const ResolvedRun& run, bool has_devices) {
  using runfile::CudaGraphs;
  const CudaGraphs wanted = run.config.train.cuda_graphs;
  const std::int64_t tokens = run.config.train.micro_batch * run.config.model.context / run.mesh.cp;
  if (wanted == CudaGraphs::never ||
      (wanted == CudaGraphs::automatic && tokens > most_tokens_for_graphs)) {
    return {};
  }
  const std::string_view why_not = obstacle(run, has_devices);
  if (!why_not.empty()) {
    return {.why_not = wanted == CudaGraphs::always ? why_not : std::string_view()};
  }
  return {.graphs = run.zero.shard_ranks > 1 ? parallel::GraphsOf::partial_but_first
                                             : parallel::GraphsOf::partial};
}

}  // namespace fourfold::train
