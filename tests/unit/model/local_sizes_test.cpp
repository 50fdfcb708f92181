// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "small_models.hpp"

#include <fourfold/model/presets.hpp>
#include <fourfold/model/stage.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model_test::small;

namespace model = fourfold::model;

TEST_CASE("sizes are read off the boxes", "[local_sizes]") {
  const Architecture config = small(Family::llama, 0, false);
  const auto table = model::parameter_table(config);
  std::vector<fourfold::Box> boxes = model::whole_boxes(table);
  CHECK(model::local_sizes(config, table, boxes) == model::local_sizes(config, {}, {}));
  const auto cut = [&](std::string_view name_end, std::size_t dim, fourfold::Range here) {
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (table[i].name.ends_with(name_end)) {
        boxes[i].offset[dim] = here.begin;
        boxes[i].extent[dim] = here.count;
      }
    }
  };
  cut("attn.q_proj.weight", 0, {0, 3 * config.attention.head_dim});
  cut("attn.k_proj.weight", 0, {0, config.attention.head_dim});
  cut("attn.v_proj.weight", 0, {0, config.attention.head_dim});
  cut("attn.o_proj.weight", 1, {0, 3 * config.attention.head_dim});
  cut("mlp.gate_proj.weight", 0, {0, 19});
  cut("mlp.up_proj.weight", 0, {0, 19});
  cut("mlp.down_proj.weight", 1, {0, 19});
  cut("embedding.token.weight", 0, {21, 20});
  cut("lm_head.weight", 0, {21, 20});
  const model::LocalSizes expected{3, 1, 19, {21, 20}};
  CHECK(model::local_sizes(config, table, boxes) == expected);
}
