// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "small_models.hpp"

#include <fourfold/model/stage.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

using fourfold::model::Family;
using fourfold::model::ModelConfig;
using fourfold::model_test::small;

namespace model = fourfold::model;

TEST_CASE("sizes are read off the boxes", "[local_sizes]") {
  const ModelConfig config = small(Family::llama, 0, false);
  const auto table = model::parameter_table(config);
  std::vector<fourfold::Box> boxes;
  boxes.reserve(table.size());
  for (const model::ParameterSpec& spec : table) {
    boxes.push_back(fourfold::Box::whole(spec.shape));
  }
  CHECK(model::local_sizes(config, table, boxes) == model::local_sizes(config, {}, {}));
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].name.ends_with("q_proj.weight")) {
      boxes[i].extent[0] = 3 * config.head_dim;
    } else if (table[i].name.ends_with("k_proj.weight")) {
      boxes[i].extent[0] = config.head_dim;
    } else if (table[i].name.ends_with("up_proj.weight")) {
      boxes[i].extent[0] = 19;
    } else if (table[i].name == "lm_head.weight" || table[i].name == "embedding.token.weight") {
      boxes[i].offset[0] = 21;
      boxes[i].extent[0] = 20;
    }
  }
  const model::LocalSizes expected{3, 1, 19, {21, 20}};
  CHECK(model::local_sizes(config, table, boxes) == expected);
}
