// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "pass.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/activation.hpp>
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

void Pass::drop_and_add(std::uint64_t site, ConstTensorView x_RD, ConstTensorView residual_RD,
                        TensorView y_RD, device::StreamRef stream) const {
  if (!drops()) {
    FOURFOLD_EXPECT(residual_RD);
    kernels::add(x_RD, residual_RD, y_RD, stream);
    return;
  }
  kernels::DropoutSite place = dropout;
  place.site = site;
  kernels::dropout_add(place, x_RD, residual_RD, sample_N.rows(residual.begin, residual.count),
                       position_N.rows(residual.begin, residual.count), y_RD, stream);
}

void Pass::drop_backward(std::uint64_t site, ConstTensorView dy_RD, TensorView dx_RD,
                         device::StreamRef stream) const {
  FOURFOLD_EXPECT(drops());
  kernels::DropoutSite place = dropout;
  place.site = site;
  kernels::dropout_backward(place, dy_RD, sample_N.rows(residual.begin, residual.count),
                            position_N.rows(residual.begin, residual.count), dx_RD, stream);
}

}  // namespace fourfold::model
