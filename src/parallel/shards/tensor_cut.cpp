// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/parallel/tensor_cut.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace fourfold::parallel {
namespace {

/// A model of `heads` and `kv_heads` can be cut into tp parts by heads.
bool heads_divide(const model::Architecture& config, int tp) {
  return config.attention.heads % tp == 0 &&
         (config.attention.kv_heads % tp == 0 || tp % config.attention.kv_heads == 0);
}

std::string degrees_that_work(const model::Architecture& config) {
  const std::int64_t most =
      std::min({config.attention.heads, config.feed_forward.width, config.vocab, config.context});
  std::string text;
  for (int tp = 1; tp <= most; ++tp) {
    if (heads_divide(config, tp)) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", tp);
    }
  }
  return text;
}

}  // namespace

TensorShard tensor_shard(const model::ParameterSpec& spec, int tp, int rank) {
  FOURFOLD_EXPECT(0 <= rank && rank < tp);
  TensorShard shard{Box::whole(spec.shape), {0, tp}};
  if (!spec.cut) {
    return shard;
  }
  const auto& [unit, dim, units] = *spec.cut;
  const std::int64_t features = spec.shape[dim] / units;  // of one unit
  Range mine;
  if (units < tp) {  // only heads may be shared: validate_tensor_cut
    const std::int64_t sharers = tp / units;
    mine = {rank / sharers, 1};
    shard.holders = {mine.begin * sharers, sharers};
  } else {
    mine = even_part(units, tp, rank);
    shard.holders = {rank, 1};
  }
  shard.box.offset[dim] = mine.begin * features;
  shard.box.extent[dim] = mine.count * features;
  return shard;
}

std::vector<TensorShard> tensor_shards(const model::ParameterSpec& spec, int tp) {
  std::vector<TensorShard> shards;
  for (std::int64_t rank = 0; rank < tp; rank = shards.back().holders.end()) {
    shards.push_back(tensor_shard(spec, tp, static_cast<int>(rank)));
  }
  return shards;
}

bool gradient_is_partial(const model::ParameterSpec& spec, const TensorShard& shard,
                         bool sequence_parallel) {
  if (shard.holders.count == 1) {
    return false;
  }
  return spec.partial == model::PartialGradient::over_heads ||
         (spec.partial == model::PartialGradient::over_rows && sequence_parallel);
}

bool blocks_are_cut_alike(const model::Architecture& config, int tp) {
  return config.feed_forward.width % tp == 0;
}

std::vector<Box> tensor_boxes(const std::vector<model::ParameterSpec>& table, int tp, int rank) {
  std::vector<Box> boxes;
  boxes.reserve(table.size());
  for (const model::ParameterSpec& spec : table) {
    boxes.push_back(tensor_shard(spec, tp, rank).box);
  }
  return boxes;
}

void validate_tensor_cut(const model::Architecture& config, int tp) {
  FOURFOLD_EXPECT(tp >= 1);
  if (!heads_divide(config, tp)) {
    throw UserError(
        ExitCode::config,
        format_message("mesh.tp = {} does not fit model.heads = {} with model.kv_heads = {} (each "
                       "rank takes the same number of whole heads, or shares one key/value head "
                       "with its neighbours); set it to one of {}",
                       tp, config.attention.heads, config.attention.kv_heads,
                       degrees_that_work(config)));
  }
  for (const auto& [key, size] :
       {std::pair{"ffn", config.feed_forward.width}, std::pair{"vocab", config.vocab},
        std::pair{"context", config.context}}) {
    if (size < tp) {
      throw UserError(ExitCode::config,
                      format_message("mesh.tp = {} is more than model.{} = {} (every rank must "
                                     "hold some of it); set it to one of {}",
                                     tp, key, size, degrees_that_work(config)));
    }
  }
}

}  // namespace fourfold::parallel
