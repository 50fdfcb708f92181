// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/model/presets.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace fourfold::runfile;

namespace {

const std::string data_table = "[data]\ntrain = [\"t.bin\"]\n";

EffectiveConfig parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(text, "run.toml", overrides);
}

}  // namespace

TEST_CASE("each trait of a model is a key, and a family a set of them", "[run_config]") {
  using namespace fourfold::model;
  const auto with = [](const std::string& keys) {
    return parse("[model]\n" + keys + "qk_norm = true\n" + data_table).config.model;
  };
  const Architecture mixed =
      with("norm = \"rms\"\npositions = \"rotary\"\nno_rope_interval = 4\nfamily = \"gpt2\"\n");
  CHECK(mixed.norm.kind == NormTraits::Kind::rms);
  CHECK(mixed.positions.kind == PositionTraits::Kind::rotary);
  CHECK(mixed.positions.no_rope_interval == 4);
  CHECK(mixed.biases);
  CHECK(mixed.feed_forward.activation == fourfold::kernels::Activation::gelu_tanh);
  CHECK(parse(data_table, {"model.gated=false", "model.family=llama"}).config.model.biases ==
        false);
  CHECK(parse(data_table, {"model.gated=false", "model.family=llama"})
            .config.model.feed_forward.gated == false);

  // The command line counts more than the file, a family there more than the traits in it.
  const EffectiveConfig replaced =
      parse("[model]\nnorm = \"rms\"\nbiases = false\ngated = false\n" + data_table,
            {"model.biases=false", "model.family=gpt2"});
  CHECK(replaced.config.model.norm.kind == NormTraits::Kind::layer);
  CHECK_FALSE(replaced.config.model.biases);
  CHECK_FALSE(replaced.origins.contains("model.norm"));
  CHECK(replaced.origins.at("model.gated").source == Origin::Source::file);
  CHECK(replaced.origins.at("model.biases").source == Origin::Source::command_line);
  REQUIRE(replaced.notes.size() == 2);
  CHECK(replaced.notes.front().ends_with("model.norm gives way to model.family"));

  // Norms of queries and keys are computed whatever the positions: nobody is told that they have no
  // effect, and a resume without them is another run.
  const EffectiveConfig normed = parse(data_table, {"model.qk_norm=true"});
  CHECK(normed.warnings.empty());
  const auto changes = config_difference(normed.config, parse(data_table).config);
  REQUIRE(changes.size() == 1);
  CHECK(changes.front().key == "model.qk_norm");
  CHECK(changes.front().rule == OnResume::impossible);

  // All of them, written and read again.
  for (int traits = 0; traits < 3 << 4; ++traits) {
    const auto flag = [&](int bit) { return (traits & 1 << bit) != 0 ? "true" : "false"; };
    const std::string position = std::vector{"learned", "rotary", "none"}[traits >> 4];
    const EffectiveConfig effective = parse(
        data_table,
        {std::string("model.norm=") + ((traits & 1) != 0 ? "rms" : "layer"),
         std::string("model.activation=") + ((traits & 2) != 0 ? "silu" : "gelu_tanh"),
         std::string("model.gated=") + flag(2), std::string("model.biases=") + flag(3),
         "model.positions=" + position, "model.qk_norm=true", "model.frozen=[\"embedding.*\"]",
         position == "rotary" ? "model.no_rope_interval=3" : "model.no_rope_interval=0"});
    CAPTURE(traits);
    const Architecture& config = effective.config.model;
    CHECK(config.feed_forward.width == (config.feed_forward.gated ? 2048 : 3072));
    CHECK(parse(print_run_config(effective)).config.model == config);
  }
}
