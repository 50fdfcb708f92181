// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/model/stage.hpp>

#include <string>

namespace fourfold::model {

LocalSizes local_sizes(const ModelConfig& config, std::span<const ParameterSpec> table,
                       std::span<const Box> boxes) {
  FOURFOLD_EXPECT(table.size() == boxes.size());
  LocalSizes sizes{config.heads, config.kv_heads, config.ffn, {0, config.vocab}};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const std::string& name = table[i].name;
    if (name.ends_with(".attn.q_proj.weight")) {
      sizes.heads = boxes[i].extent[0] / config.head_dim;
    } else if (name.ends_with(".attn.k_proj.weight")) {
      sizes.kv_heads = boxes[i].extent[0] / config.head_dim;
    } else if (name.ends_with(".mlp.up_proj.weight")) {
      sizes.ffn = boxes[i].extent[0];
    } else if (name == token_embedding_name || name == "lm_head.weight") {
      sizes.vocab_rows = {boxes[i].offset[0], boxes[i].extent[0]};
    }
  }
  return sizes;
}

}  // namespace fourfold::model
