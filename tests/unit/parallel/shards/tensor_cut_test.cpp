// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"
#include "small_architecture.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/parallel/replica_sums.hpp>
#include <fourfold/parallel/tensor_cut.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <map>
#include <string>

namespace fourfold::parallel {
namespace {

model::Architecture grouped(std::int64_t heads, std::int64_t kv_heads) {
  model::Architecture config = model_test::small_model({.family = model::Family::llama,
                                                        .layers = 1,
                                                        .hidden = 8 * heads,
                                                        .heads = heads,
                                                        .kv_heads = kv_heads,
                                                        .vocab = 101,
                                                        .tied = false});
  config.attention.qkv_bias = true;
  return config;
}

std::string refusal(const model::Architecture& config, int tp) {
  try {
    validate_tensor_cut(config, tp);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "";
}

TEST_CASE("the parts of every parameter cover it once and are held by every rank", "[tensor_cut]") {
  const auto [heads, kv_heads] =
      GENERATE(table<std::int64_t, std::int64_t>({{8, 8}, {8, 2}, {8, 1}, {12, 4}}));
  const model::Architecture config = grouped(heads, kv_heads);
  for (const int tp : {1, 2, 4}) {
    CAPTURE(heads, kv_heads, tp);
    validate_tensor_cut(config, tp);
    for (const model::ParameterSpec& spec : model::parameter_table(config)) {
      CAPTURE(spec.name);
      std::int64_t elements = 0;
      std::int64_t next_rank = 0;
      for (const TensorShard& shard : tensor_shards(spec, tp)) {
        CHECK(shard.holders.begin == next_rank);
        next_rank = shard.holders.end();
        elements += shard.box.elements();
        CHECK(contains(Box::whole(spec.shape), shard.box));
        for (std::int64_t rank = shard.holders.begin; rank < shard.holders.end(); ++rank) {
          CHECK(tensor_shard(spec, tp, static_cast<int>(rank)).box == shard.box);
        }
      }
      CHECK(next_rank == tp);
      CHECK(elements == spec.shape.elements());
    }
  }
}

TEST_CASE("a rank's query heads find their key/value heads on the same rank", "[tensor_cut]") {
  const model::Architecture config = grouped(8, 2);
  const int tp = 4;
  for (int rank = 0; rank < tp; ++rank) {
    std::map<std::string, Box> boxes;
    const auto table = model::parameter_table(config);
    const auto cut = tensor_boxes(table, tp, rank);
    for (std::size_t i = 0; i < table.size(); ++i) {
      boxes[table[i].name] = cut[i];
    }
    const std::int64_t first_query = boxes["layers.0.attn.q_proj.weight"].offset[0] / 8;
    CHECK(first_query == 2 * rank);
    CHECK(boxes["layers.0.attn.k_proj.weight"].offset[0] / 8 == first_query / 4);
    CHECK(boxes["layers.0.attn.v_proj.bias"].extent[0] == 8);
    CHECK(boxes["layers.0.attn.o_proj.weight"].offset[1] == 8 * first_query);
    CHECK(boxes["layers.0.attn_norm.weight"].extent[0] == config.hidden);
  }
}

TEST_CASE("a gradient is partial where a rank has only its heads or rows of it", "[tensor_cut]") {
  using model::PartialGradient;
  const model::Architecture config = grouped(8, 2);
  const auto is_partial = [&](const char* name, int tp, bool sequence_parallel) {
    const auto table = model::parameter_table(config);
    const auto spec = std::ranges::find(table, name, &model::ParameterSpec::name);
    REQUIRE(spec != table.end());
    return gradient_is_partial(*spec, tensor_shard(*spec, tp, 0), sequence_parallel);
  };
  for (const bool sequence_parallel : {false, true}) {
    CHECK(is_partial("layers.0.attn.k_proj.weight", 4, sequence_parallel));
    CHECK(is_partial("layers.0.attn.v_proj.bias", 4, sequence_parallel));
    CHECK_FALSE(is_partial("layers.0.attn.k_proj.weight", 2, sequence_parallel));
    CHECK_FALSE(is_partial("layers.0.attn.q_proj.weight", 4, sequence_parallel));
    CHECK(is_partial("final_norm.weight", 2, sequence_parallel) == sequence_parallel);
    CHECK_FALSE(is_partial("final_norm.weight", 1, sequence_parallel));
    // Of a vector that all heads share, whatever it is called.
    const model::ParameterSpec of_heads{.name = "any",
                                        .shape = {8},
                                        .kind = model::ParameterKind::vector,
                                        .partial = PartialGradient::over_heads};
    CHECK(gradient_is_partial(of_heads, tensor_shard(of_heads, 2, 1), sequence_parallel));
  }
}

TEST_CASE("each logical element counts once", "[tensor_cut]") {
  const model::Architecture config = grouped(8, 2);
  const std::vector<model::ParameterSpec> table = model::parameter_table(config);
  for (const int tp : {1, 2, 4}) {
    std::int64_t counted = 0;
    for (int rank = 0; rank < tp; ++rank) {
      fourfold::harness::SharedArena arena;
      const model::Parameters parameters(table, tensor_boxes(table, tp, rank), DType::f32, arena);
      for (const model::Parameter& parameter : parameters) {
        for (std::int64_t i = 0; i < parameter.gradient.elements(); ++i) {
          parameter.gradient.as<float>()[i] = 1;
        }
      }
      for (const Range& range : counted_once(parameters, tp, rank)) {
        for (std::int64_t i = range.begin; i < range.end(); ++i) {
          counted += parameters.gradients().as<float>()[i] == 1 ? 1 : 0;
        }
      }
    }
    CHECK(counted == model::parameter_count(config));
  }
}

TEST_CASE("what cannot be cut is refused with the degrees that work", "[tensor_cut]") {
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refusal(grouped(6, 6), 4),
             ContainsSubstring("mesh.tp = 4") && ContainsSubstring("set it to one of 1, 2, 3, 6"));
  CHECK_THAT(refusal(grouped(12, 4), 6), ContainsSubstring("set it to one of 1, 2, 4, 12"));
  model::Architecture narrow = grouped(8, 8);
  narrow.vocab = 3;
  CHECK_THAT(refusal(narrow, 4),
             ContainsSubstring("model.vocab = 3") && ContainsSubstring("set it to one of 1, 2"));
  CHECK(refusal(grouped(12, 4), 4).empty());
}

}  // namespace
}  // namespace fourfold::parallel
