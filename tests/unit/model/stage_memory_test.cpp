// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "small_models.hpp"

#include <fourfold/model/stage.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <vector>

using fourfold::DType;
using fourfold::device::MemoryUse;
using fourfold::model::Family;
using fourfold::model::ModelConfig;
using fourfold::model::Seams;
using fourfold::model::StageOptions;
using fourfold::model::Units;
using fourfold::model_test::Model;
using fourfold::model_test::options_for;
using fourfold::model_test::small;

namespace model = fourfold::model;

namespace {

constexpr std::array all_uses{MemoryUse::weights,       MemoryUse::gradients,
                              MemoryUse::optimizer,     MemoryUse::activations,
                              MemoryUse::communication, MemoryUse::workspace};

model::LocalSizes whole_sizes(const ModelConfig& config) {
  return model::local_sizes(config, {}, {});
}

}  // namespace

TEST_CASE("predicted bytes are those the arena hands out", "[stage_memory]") {
  Seams seams;
  int cases = 0;
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const double dropout : {0.0, 0.1}) {
      const ModelConfig config = small(family, dropout);
      for (const Units units : {Units{0, 5}, Units{0, 1}, Units{0, 3}, Units{2, 3}, Units{3, 5}}) {
        for (const DType compute : {DType::f32, DType::bf16}) {
          for (const auto purpose :
               {StageOptions::Purpose::train, StageOptions::Purpose::evaluate}) {
            for (const auto backward :
                 {StageOptions::Backward::fused, StageOptions::Backward::split}) {
              for (const int slots : {1, 3}) {
                StageOptions options = options_for(3, 5, slots);
                options.purpose = purpose;
                options.backward = backward;
                Model made(config, units, options, seams, compute);
                fourfold::device::Arena bare;
                const model::Parameters parameters(model::parameter_table(config, units), compute,
                                                   bare);
                const auto predicted =
                    model::stage_bytes(config, units, whole_sizes(config), compute, options, 15);
                for (const MemoryUse use : all_uses) {
                  CHECK(predicted[static_cast<std::size_t>(use)] + bare.bytes(use) ==
                        made.arena.bytes(use));
                }
                ++cases;
              }
            }
          }
        }
      }
    }
  }
  CHECK(cases == 320);
}

TEST_CASE("a layer keeps the published minimal set of activations", "[stage_memory]") {
  // Bytes per token and layer with 16-bit storage and exact attention in linear memory: gpt2
  // 32 h + 4 a + 16, llama (12 + 4 g) h + 6 f + 4 a + 8 with g = kv_heads / heads.
  const auto bytes_per_layer = [](ModelConfig config) {
    StageOptions options = options_for(4, 1024);
    const auto activations = [&](std::int64_t layers) {
      config.layers = layers;
      return model::stage_bytes(config, model::all_units(config), whole_sizes(config), DType::bf16,
                                options, 4096)[static_cast<std::size_t>(MemoryUse::activations)];
    };
    return static_cast<std::int64_t>((activations(3) - activations(2)) / 4096);
  };
  CHECK(bytes_per_layer(model::preset("gpt2-124m")) == 32 * 768 + 4 * 12 + 16);
  CHECK(bytes_per_layer(model::preset("gpt2-1558m")) == 32 * 1600 + 4 * 25 + 16);
  CHECK(bytes_per_layer(model::preset("llama-3-8b")) == 13 * 4096 + 6 * 14336 + 4 * 32 + 8);
}

TEST_CASE("sizes are read off the boxes", "[stage_memory]") {
  const ModelConfig config = small(Family::llama, 0, false);
  const auto table = model::parameter_table(config);
  std::vector<fourfold::Box> boxes;
  boxes.reserve(table.size());
  for (const model::ParameterSpec& spec : table) {
    boxes.push_back(fourfold::Box::whole(spec.shape));
  }
  CHECK(model::local_sizes(config, table, boxes) == whole_sizes(config));
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
