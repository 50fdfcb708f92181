// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model/presets.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::test {

/// gpt2-124m but for these; key/value heads and their width follow.
struct ModelSizes {
  std::int64_t layers = 1;
  std::int64_t hidden = 8;
  std::int64_t heads = 1;
  std::int64_t ffn = 8;
  std::int64_t vocab = 8;
  std::int64_t context = 8;
};

inline model::Architecture gpt2_of_size(const ModelSizes& sizes) {
  model::Architecture config = model::preset("gpt2-124m");
  config.layers = sizes.layers;
  config.hidden = sizes.hidden;
  config.attention.heads = sizes.heads;
  config.attention.kv_heads = sizes.heads;
  config.attention.head_dim = sizes.hidden / sizes.heads;
  config.feed_forward.width = sizes.ffn;
  config.vocab = sizes.vocab;
  config.context = sizes.context;
  return config;
}

/// What one rank holds of each parameter without tensor parallelism.
inline std::vector<Box> whole_boxes(const model::Architecture& config) {
  return model::whole_boxes(model::parameter_table(config));
}

}  // namespace fourfold::test
