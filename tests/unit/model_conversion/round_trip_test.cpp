// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "safetensors_files.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/safetensors.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/export.hpp>
#include <fourfold/model_conversion/import.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::Box;
using fourfold::DType;
using fourfold::ExitCode;
using fourfold::Range;
using fourfold::UserError;
using fourfold::harness::CountedWeights;
using fourfold::harness::read_box;
using fourfold::harness::read_bytes;
using fourfold::harness::read_whole;
using fourfold::harness::ScratchFolder;
using fourfold::model_conversion::ExportOptions;
using fourfold::model_conversion::ExportPlan;
using fourfold::model_conversion::ExternalModel;

namespace model = fourfold::model;
namespace model_conversion = fourfold::model_conversion;

namespace {

const auto quiet = [](std::int64_t) {};

std::string refusal(const std::function<void()>& call, ExitCode code = ExitCode::config) {
  try {
    call();
  } catch (const UserError& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

void check_same(const model::Architecture& config, ExternalModel& imported,
                CountedWeights& weights) {
  CHECK(imported.config == config);
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    INFO(spec.name);
    CHECK(read_whole(*imported.source, spec) == weights.of(spec.name));
    // And any part of it.
    for (const Box& box : boxes_of_flat_range(
             spec.shape, Range{spec.shape.elements() / 3, spec.shape.elements() / 2})) {
      CHECK(read_box(*imported.source, spec.name, box) == read_box(weights, spec.name, box));
    }
  }
}

}  // namespace

TEST_CASE("what is exported to Hugging Face's format comes back") {
  model::Architecture config =
      GENERATE(fourfold::harness::gpt2_model(), fourfold::harness::llama_model());
  config.tie_embeddings = GENERATE(false, true);
  if (family_of(config) == model::Family::llama) {
    const int kind = GENERATE(0, 1, 2);
    config.attention.qkv_bias = kind == 1;
    config.attention.qk_norm = kind == 2;
  }
  const ScratchFolder scratch;
  CountedWeights weights(config);
  const std::filesystem::path path = scratch / "model";
  model_conversion::write_export(model_conversion::plan_hf_export(config, {.shard_bytes = 20'000}),
                                 weights, path, 1, quiet);
  ExternalModel imported = model_conversion::open_hf(path, {});
  check_same(config, imported, weights);
}

TEST_CASE("what is exported to llm.c's format comes back") {
  model::Architecture config = fourfold::harness::gpt2_model();
  const ScratchFolder scratch;
  CountedWeights weights(config);
  model_conversion::write_export(model_conversion::plan_llmc_export(config, {}), weights,
                                 scratch / "m.bin", 1, quiet);
  ExternalModel imported = model_conversion::open_llmc(scratch / "m.bin", {});
  check_same(config, imported, weights);
  // Two positions and thirty rows fewer: the first ones.
  ExternalModel cut = model_conversion::open_llmc(scratch / "m.bin", {.vocab = 101, .context = 9});
  CHECK(cut.config.vocab == 101);
  CHECK(read_box(*cut.source, "embedding.position.weight", Box::whole({9, 30})) ==
        read_box(weights, "embedding.position.weight", Box::whole({9, 30})));
}

TEST_CASE("a tensor wider than the memory is made and read row by row") {
  // Rows of 1.08 MB through buffers of 1 MiB, turned and not.
  model::Architecture config = fourfold::harness::gpt2_model();
  config.layers = 1;
  config.feed_forward.width = 270'000;
  const ScratchFolder scratch;
  CountedWeights weights(config);
  model_conversion::write_export(model_conversion::plan_hf_export(config, {}), weights,
                                 scratch / "m", 1, quiet);
  ExternalModel imported = model_conversion::open_hf(scratch / "m", {});
  const Box box{{269'990, 3}, {10, 25}};
  CHECK(read_box(*imported.source, "layers.0.mlp.up_proj.weight", box) ==
        read_box(weights, "layers.0.mlp.up_proj.weight", box));
  for (const char* name : {"layers.0.mlp.up_proj.weight", "layers.0.mlp.down_proj.weight"}) {
    const Box whole =
        Box::whole(name[13] == 'u' ? fourfold::Shape{270'000, 30} : fourfold::Shape{30, 270'000});
    CHECK(read_box(*imported.source, name, whole) == weights.of(name));
  }
}

TEST_CASE("padding of the vocabulary is added as zeros and cut off") {
  model::Architecture config = fourfold::harness::llama_model();
  const ScratchFolder scratch;
  CountedWeights weights(config);
  model_conversion::write_export(model_conversion::plan_hf_export(config, {.vocab_multiple = 64}),
                                 weights, scratch / "m", 1, quiet);
  ExternalModel padded = model_conversion::open_hf(scratch / "m", {});
  CHECK(padded.config.vocab == 192);
  for (const char* name : {"embedding.token.weight", "lm_head.weight"}) {
    std::vector<float> expected = weights.of(name);
    expected.resize(192 * 30, 0.0F);
    CHECK(read_box(*padded.source, name, Box::whole({192, 30})) == expected);
  }
  ExternalModel cut = model_conversion::open_hf(scratch / "m", {.vocab = 131});
  check_same(config, cut, weights);
  CHECK_THAT(refusal([&] { model_conversion::open_hf(scratch / "m", {.vocab = 193}); }),
             ContainsSubstring("--vocab 193 is more than the model has (192 rows)"));
  CHECK_THAT(refusal([&] { model_conversion::open_hf(scratch / "m", {.context = 12}); }),
             ContainsSubstring("--context 12"));
  CHECK(model_conversion::open_hf(scratch / "m", {.context = 7}).config.context == 7);
}

TEST_CASE("16-bit types hold the nearest values, and no overflow goes unseen") {
  const DType dtype = GENERATE(DType::bf16, DType::f16);
  model::Architecture config = fourfold::harness::gpt2_model();
  config.layers = 1;
  const ScratchFolder scratch;
  CountedWeights weights(config);
  model_conversion::write_export(model_conversion::plan_hf_export(config, {.dtype = dtype}),
                                 weights, scratch / "m", 1, quiet);
  ExternalModel imported = model_conversion::open_hf(scratch / "m", {});
  const std::string name = "layers.0.attn.k_proj.weight";
  const std::vector<float> got = read_box(*imported.source, name, Box::whole({30, 30}));
  for (std::size_t i = 0; i < got.size(); ++i) {
    const float exact = weights.of(name)[i];
    CHECK(got[i] == (dtype == DType::bf16 ? static_cast<float>(fourfold::BFloat16(exact))
                                          : static_cast<float>(fourfold::Float16(exact))));
  }
  weights.of(name)[17] = dtype == DType::bf16 ? -3.4e38F : 65520.0F;
  const std::string told = refusal([&] {
    model_conversion::write_export(model_conversion::plan_hf_export(config, {.dtype = dtype}),
                                   weights, scratch / "n", 1, quiet);
  });
  CHECK_THAT(told, ContainsSubstring("transformer.h.0.attn.c_attn.weight"));
  CHECK_THAT(told, ContainsSubstring("too narrow"));
  // Nothing is left behind, and what is there is not replaced.
  CHECK(std::distance(std::filesystem::directory_iterator(scratch.path()), {}) == 1);
  weights.of(name)[17] = 0;
  CHECK_THAT(refusal(
                 [&] {
                   model_conversion::write_export(model_conversion::plan_hf_export(config, {}),
                                                  weights, scratch / "m", 1, quiet);
                 },
                 ExitCode::cannot_write),
             ContainsSubstring("is there already"));
}

TEST_CASE("what llm.c's GPT-2 cannot be is refused by name and value") {
  const auto told = [](const std::function<void(model::Architecture&)>& change, DType dtype) {
    model::Architecture config = fourfold::harness::gpt2_model();
    change(config);
    return refusal([&] { model_conversion::plan_llmc_export(config, {.dtype = dtype}); });
  };
  using Config = model::Architecture;
  CHECK(told([](Config&) {}, DType::bf16) == "accepted");
  CHECK_THAT(told([](Config&) {}, DType::f16), ContainsSubstring("--dtype = f16"));
  CHECK_THAT(told([](Config& c) { set_family(c, model::Family::llama); }, DType::f32),
             ContainsSubstring("model.family = llama"));
  CHECK_THAT(told([](Config& c) { c.tie_embeddings = false; }, DType::f32),
             ContainsSubstring("model.tie_embeddings = false"));
  CHECK_THAT(told([](Config& c) { c.attention.kv_heads = 1; }, DType::f32),
             ContainsSubstring("model.kv_heads = 1"));
  CHECK_THAT(told([](Config& c) { c.attention.head_dim = 7; }, DType::f32),
             ContainsSubstring("model.head_dim = 7"));
  CHECK_THAT(told([](Config& c) { c.feed_forward.width = 121; }, DType::f32),
             ContainsSubstring("model.ffn = 121"));
  CHECK_THAT(told([](Config& c) { c.norm.epsilon = 1e-6; }, DType::f32),
             ContainsSubstring("model.norm_epsilon = 1e-06"));
}

TEST_CASE("files of another model are refused with the tensor that shows it") {
  model::Architecture config = fourfold::harness::llama_model();
  config.layers = 1;
  config.tie_embeddings = GENERATE(false, true);
  const ScratchFolder scratch;
  fourfold::harness::HfFiles files(scratch / "m", config);
  const auto told = [&](ExitCode code = ExitCode::data_corrupt) {
    files.write();
    return refusal([&] { model_conversion::open_hf(scratch / "m", {}); }, code);
  };
  CHECK(told() == "accepted");
  auto& arrays = files.arrays;
  const auto before = arrays;
  SECTION("a tensor is missing") {
    arrays.erase(arrays.begin() + 3);
    CHECK_THAT(told(), ContainsSubstring("the tensor " + before[3].name + " is missing"));
  }
  SECTION("a tensor has another shape") {
    arrays[2].shape[0] += 1;
    CHECK_THAT(told(), ContainsSubstring(before[2].name + " has the shape"));
  }
  SECTION("a tensor is of integers") {
    arrays[2].dtype = DType::i32;
    CHECK_THAT(told(ExitCode::config), ContainsSubstring(before[2].name + " is of type I32"));
  }
  SECTION("there are more") {
    arrays.push_back({"score.weight", DType::f32, {2, 30}});
    CHECK_THAT(told(ExitCode::config), ContainsSubstring("score.weight"));
  }
  SECTION("there are buffers of older days") {
    arrays.push_back({"model.layers.0.self_attn.rotary_emb.inv_freq", DType::f32, {2}});
    CHECK(told() == "accepted");
  }
  SECTION("it is the base model, without prefix") {
    for (auto& array : arrays) {
      array.name = array.name.starts_with("model.") ? array.name.substr(6) : array.name;
    }
    CHECK(told() == "accepted");
  }
  SECTION("there is a head beside a tied embedding") {
    if (config.tie_embeddings) {
      arrays.push_back({"lm_head.weight", DType::f32, {131, 30}});
      CHECK(told() == "accepted");  // equal
      // In another type than the embedding: rounded alike.
      for (const DType dtype : {DType::bf16, DType::f64}) {
        arrays.back().dtype = dtype;
        CHECK(told() == "accepted");
      }
      for (const DType dtype : {DType::f32, DType::bf16, DType::i32}) {
        arrays.back().dtype = dtype;
        files.differing = dtype == DType::i32 ? "" : "lm_head.weight";
        CHECK_THAT(told(ExitCode::config),
                   ContainsSubstring("lm_head.weight differs from model.embed_tokens.weight"));
      }
    }
  }
  SECTION("the configuration has fewer layers than the files") {
    for (const char* name : {"model.layers.1.mlp.up_proj.weight", "layers.70.anything.x"}) {
      arrays.push_back({name, DType::f32, {1}});
      CHECK_THAT(told(ExitCode::config),
                 ContainsSubstring(std::string("config.json says num_hidden_layers = 1, and the "
                                               "files hold ") +
                                   name));
      arrays.pop_back();
    }
  }
  SECTION("the configuration has very many layers") {
    files.replace_in_config("\"num_hidden_layers\": 1", "\"num_hidden_layers\": 900000000");
    CHECK_THAT(told(), ContainsSubstring("has 900000000 layers"));
  }
}

TEST_CASE("an imported checkpoint holds masters, the model's run file, and no progress") {
  const model::Architecture config = fourfold::harness::llama_model();
  const auto layouts = model_conversion::layouts_of(config);
  CHECK(layouts.size() == model::parameter_table(config).size());
  CHECK(fourfold::io::plan_save(layouts, 1).bytes_of_rank.at(0) ==
        4 * model::parameter_count(config));
  const auto scalars = model_conversion::scalars_of(config, "/there/tokenizer.json");
  CHECK(scalars.integer(fourfold::runfile::consumed_samples_name) == 0);
  const auto run = fourfold::runfile::parse_saved_config(
      scalars.text(fourfold::runfile::config_text_name), "config.toml");
  CHECK(run.model == config);
  CHECK(run.data.tokenizer == "/there/tokenizer.json");
  const auto untold = fourfold::runfile::parse_saved_config(
      model_conversion::scalars_of(config, "").text(fourfold::runfile::config_text_name),
      "config.toml");
  CHECK(untold.data.tokenizer == fourfold::runfile::unknown_tokenizer_name);
  CHECK(run.train == fourfold::runfile::RunConfig().train);
}
