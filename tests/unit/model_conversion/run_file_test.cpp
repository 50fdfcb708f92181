// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"

#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/import.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>
#include <vector>

using fourfold::model_conversion::run_file_of;
namespace runfile = fourfold::runfile;
namespace model = fourfold::model;

TEST_CASE("the run file of an import is complete but for the data, and its model exact") {
  model::Architecture config =
      GENERATE(fourfold::harness::gpt2_model(), fourfold::harness::llama_model());
  config.norm.epsilon = 3.0000000000000004e-6;
  config.dropout = 0.1;
  if (family_of(config) == model::Family::llama) {
    config.positions.rope_theta = 1234.5678;
    config.positions.rope_scaling.kind =
        GENERATE(model::RopeScaling::Kind::none, model::RopeScaling::Kind::by_wavelength);
    config.positions.rope_scaling.factor =
        config.positions.rope_scaling.kind == model::RopeScaling::Kind::none ? 1 : 8;
  }
  const std::string text =
      run_file_of(config, "/t/\"odd\" tokenizer.json", "/to/step-000000000", "to/run.toml");
  const auto read = [&](const std::vector<std::string>& overrides) {
    return runfile::parse_run_config(text, "run.toml", overrides);
  };
  const runfile::EffectiveConfig effective = read({"data.train=x"});
  model::Architecture expected = config;
  if (config.positions.rope_scaling.kind == model::RopeScaling::Kind::none) {
    expected.positions.rope_scaling = {};
  }
  CHECK(effective.config.model == expected);
  CHECK(effective.warnings.empty());
  CHECK(effective.config.checkpoint.resume == "/to/step-000000000");
  CHECK(effective.config.checkpoint.weights_only);
  CHECK(effective.config.log.dir == "/to/run");
  CHECK(effective.config.checkpoint.dir == "/to/run/checkpoints");
  CHECK(effective.config.data.tokenizer == "/t/\"odd\" tokenizer.json");
  runfile::validate_data(effective.config, effective.origins);
  CHECK_THROWS(runfile::validate_data(read({}).config));
  // What follows other keys still does.
  CHECK(read({"data.train=x", "train.steps=77"}).config.optim.schedule.decay_steps == 77);
  for (const runfile::RunKey& key : runfile::run_keys()) {
    INFO(key.full_name);
    CHECK(text.find(key.name + " = ") != std::string::npos);
  }
}

TEST_CASE("without a tokenizer none is written down") {
  const std::string text = run_file_of(fourfold::harness::gpt2_model(), "", "/s", "f");
  CHECK(text.find("\n# tokenizer = ") != std::string::npos);
  CHECK(text.find("fourfold train 'f'\n") != std::string::npos);
}
