// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model/presets.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::model_test {

/// A family, and the sizes of one of its models; 0: as the others have it, as in a run file.
struct Sizes {
  model::Family family = model::Family::gpt2;
  std::int64_t layers = 3;
  std::int64_t hidden = 24;
  std::int64_t heads = 6;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t ffn = 37;
  std::int64_t vocab = 41;
  std::int64_t context = 16;
  double dropout = 0;
  bool tied = true;
};

inline model::Architecture small_model(const Sizes& sizes = {}) {
  model::Architecture config;
  set_family(config, sizes.family);
  config.layers = sizes.layers;
  config.hidden = sizes.hidden;
  config.attention.heads = sizes.heads;
  config.attention.kv_heads = sizes.kv_heads;
  config.attention.head_dim = sizes.head_dim;
  config.feed_forward.width = sizes.ffn;
  config.vocab = sizes.vocab;
  config.context = sizes.context;
  config.dropout = sizes.dropout;
  config.tie_embeddings = sizes.tied;
  return config.resolved();
}

/// What one rank holds of each parameter without tensor parallelism.
inline std::vector<Box> whole_boxes(const model::Architecture& config) {
  return model::whole_boxes(model::parameter_table(config));
}

}  // namespace fourfold::model_test
