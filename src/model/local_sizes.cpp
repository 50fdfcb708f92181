// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include <fourfold/base/contract.hpp>
#include <fourfold/model/stage.hpp>

namespace fourfold::model {

LocalSizes local_sizes(const Architecture& config, std::span<const ParameterSpec> table,
                       std::span<const Box> boxes) {
  FOURFOLD_EXPECT(table.size() == boxes.size());
  LocalSizes sizes{config.attention.heads,
                   config.attention.kv_heads,
                   config.feed_forward.width,
                   {0, config.vocab}};
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!table[i].cut) {
      continue;
    }
    const auto& [unit, dim, units] = *table[i].cut;
    const std::int64_t features = table[i].shape[dim] / units;  // of one unit
    const Range here{boxes[i].offset[dim] / features, boxes[i].extent[dim] / features};
    switch (unit) {
      case TensorCut::Unit::query_head:
        sizes.heads = here.count;
        break;
      case TensorCut::Unit::kv_head:
        sizes.kv_heads = here.count;
        break;
      case TensorCut::Unit::ffn_feature:
        sizes.ffn = here.count;
        break;
      case TensorCut::Unit::vocabulary_row:
        sizes.vocab_rows = here;
        break;
    }
  }
  return sizes;
}

}  // namespace fourfold::model
