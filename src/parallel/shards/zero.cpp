// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/zero.hpp>

#include <vector>

namespace fourfold::parallel {
namespace {

/// Nothing but what every rank holds anyway.
bool is_whole(const ZeroOptions& zero) {
  return zero.shard_ranks == 1 && !zero.reduce_each_micro_batch && !zero.offloads_state;
}

model::MatrixMemory double_buffered_if(bool double_buffered) {
  return double_buffered ? model::MatrixMemory::double_buffered : model::MatrixMemory::whole;
}

}  // namespace

model::ParameterMemory parameter_memory(const ZeroOptions& zero,
                                        const model::Architecture& config) {
  return {.weights = double_buffered_if(zero.gather_each_unit),
          .gradients = double_buffered_if(zero.reduce_each_micro_batch),
          .masters = is_whole(zero),
          .blocks = {1, model::all_units(config).end - 1},
          .tiles = zero.tiles};
}

ShardLayout make_layout(const model::Parameters& parameters, int ranks) {
  std::vector<model::ParameterSpec> table;
  std::vector<Box> boxes;
  for (const model::Parameter& parameter : parameters) {
    table.push_back(parameter.spec);
    boxes.push_back(parameter.box);
  }
  return {table, boxes, parameters.layout(), ranks};
}

ParameterShard make_share(const model::Parameters& parameters, const ShardLayout& layout, int index,
                          const ZeroOptions& zero, device::Arena& arena, device::Arena& state) {
  if (is_whole(zero)) {
    return ParameterShard(parameters);
  }
  return {parameters, layout, index % zero.shard_ranks, zero, arena, state};
}

int data_plane_index(const comm::MeshShape& mesh, const comm::MeshCoordinate& place) {
  return place.dp * mesh.cp + place.cp;
}

}  // namespace fourfold::parallel
