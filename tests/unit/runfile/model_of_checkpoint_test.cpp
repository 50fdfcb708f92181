// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Runs that begin with a checkpoint: its model, where the run file has none, and what of a model
/// may differ from it.
#include "small_architecture.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::RopeScaling;
using namespace fourfold::runfile;

namespace {

const std::string data_table = "[data]\ntrain = [\"x\"]\n";

Architecture small_llama() {
  return fourfold::model_test::small_model({.family = Family::llama,
                                            .layers = 4,
                                            .hidden = 64,
                                            .heads = 8,
                                            .kv_heads = 4,
                                            .ffn = 0,
                                            .vocab = 320,
                                            .context = 64,
                                            .tied = false});
}

/// As a checkpoint's; remembers where it was looked for.
struct Checkpoint {
  Architecture model = small_llama();
  std::vector<std::string> asked = {};

  EffectiveConfig begin(const std::string& text, const std::vector<std::string>& overrides) {
    return parse_run_config(text + data_table, "run.toml", overrides,
                            [this](const CheckpointConfig& config) {
                              asked.push_back(config.resume + " " + config.dir);
                              return std::optional(model);
                            });
  }
};

std::string refusal(const Architecture& before, const Architecture& after,
                    const std::vector<std::string>& allowed = {}) {
  try {
    refuse_other_model(before, after, allowed, "ckpt/step-000000004");
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("without [model] the model of the checkpoint is taken", "[model_of_checkpoint]") {
  Checkpoint checkpoint;
  const EffectiveConfig taken =
      checkpoint.begin("", {"checkpoint.resume=a/step-000000004", "log.dir=r"});
  CHECK(taken.config.model == small_llama());
  CHECK(checkpoint.asked == std::vector<std::string>{"a/step-000000004 r/checkpoints"});
  CHECK(taken.origins.at("model.layers").str() == "from checkpoint.resume");
  CHECK(parse_run_config(print_run_config(taken), "printed").config == taken.config);
  // A mesh that the default model could not have.
  CHECK(checkpoint.begin("[mesh]\ntp = 4\n", {"checkpoint.resume=a"}).config.mesh.shape.tp == 4);
  // --set lies over it.
  const EffectiveConfig set =
      checkpoint.begin("[checkpoint]\nresume = \"b\"\n", {"model.dropout=0.25"});
  CHECK(set.config.model.dropout == 0.25);
  CHECK(set.config.model.layers == 4);
  CHECK(set.origins.at("model.dropout").str() == "--set");
}

TEST_CASE("a run's own newest step is asked for its model too", "[model_of_checkpoint]") {
  Checkpoint checkpoint;
  const EffectiveConfig taken = checkpoint.begin("", {"log.dir=r"});
  CHECK(taken.config.model == small_llama());
  CHECK(checkpoint.asked == std::vector<std::string>{"auto r/checkpoints"});
  CHECK(taken.origins.at("model.layers").str() == "from the run's newest step in r/checkpoints");
}

TEST_CASE("a [model] without its vocabulary has that of the checkpoint", "[model_of_checkpoint]") {
  const auto [text, override] = GENERATE(table<std::string, std::string>({
      {"[model]\nlayers = 2\n", "checkpoint.resume=a"},
      {"[model]\nlayers = 2\n", "checkpoint.resume=auto"},
      {"[model.rope_scaling]\nfactor = 1.0\n", "checkpoint.resume=a"},
  }));
  Checkpoint checkpoint;
  const EffectiveConfig taken = checkpoint.begin(text, {override});
  CHECK(taken.config.model.vocab == small_llama().vocab);
  CHECK(taken.config.model.hidden == 768);
  CHECK(taken.origins.at("model.vocab").source == Origin::Source::derived);
  CHECK(taken.origins.count("model.hidden") == 0);
  // Whoever opens a checkpoint that cannot be opened says so: a model is written.
  const auto closed = [](const CheckpointConfig&) -> std::optional<Architecture> {
    throw UserError(ExitCode::config, "is no checkpoint");
  };
  const std::vector<std::string> overrides{override};
  CHECK(parse_run_config(text + data_table, "run.toml", overrides, closed).config.model.vocab ==
        50257);
  CHECK_THROWS_AS(parse_run_config(data_table, "run.toml", overrides, closed), UserError);
}

TEST_CASE("a model that is written whole, or a run that begins anew, asks no checkpoint",
          "[model_of_checkpoint]") {
  const auto [text, override] = GENERATE(table<std::string, std::string>({
      {"[model]\nvocab = 64\n", "checkpoint.resume=a"},
      {"[model]\nvocab = 64\n", "checkpoint.resume=auto"},
      {"[model]\npreset = \"gpt2-124m\"\n", "checkpoint.resume=a"},
      {"", "checkpoint.resume=never"},
  }));
  Checkpoint checkpoint;
  CHECK(checkpoint.begin(text, {override}).config.model.hidden == 768);
  CHECK(
      checkpoint.begin("", {"checkpoint.resume=a", "model.preset=gpt2-350m"}).config.model.hidden ==
      1024);
  CHECK(checkpoint.asked.empty());
}

TEST_CASE("weights of another model are refused, key by key", "[model_of_checkpoint]") {
  using Change = std::function<void(Architecture&)>;
  const auto [key, change] = GENERATE(table<std::string, Change>({
      {"model.heads is 4, the checkpoint has 8",
       [](Architecture& m) {
         m.attention.heads = 4;
         m.attention.kv_heads = 2;
         m.attention.head_dim = 16;
       }},
      {"model.norm_epsilon is 0.001, the checkpoint has 1e-05",
       [](Architecture& m) { m.norm.epsilon = 1e-3; }},
      {"model.rope_theta is 500000.0, the checkpoint has 10000.0",
       [](Architecture& m) { m.positions.rope_theta = 5e5; }},
      {"model.rope_scaling.kind is \"llama3\", the checkpoint has \"none\"",
       [](Architecture& m) {
         m.positions.rope_scaling.kind = RopeScaling::Kind::by_wavelength;
         m.positions.rope_scaling.factor = 8;
       }},
  }));
  Architecture other = small_llama();
  change(other);
  const std::string told = refusal(small_llama(), other);
  CHECK_THAT(told, ContainsSubstring(key + "  (allow it with --allow-change=model."));
  CHECK_THAT(told, ContainsSubstring("is not that of ckpt/step-000000004 (its weights would "
                                     "compute something else); "));
  CHECK_THAT(refusal(other, small_llama()), ContainsSubstring(key.substr(0, key.find(' '))));
  CHECK(refusal(other, other) == "accepted");
  // Everything that differs, by name.
  CHECK(refusal(small_llama(), other,
                {"model.heads", "model.kv_heads", "model.head_dim", "model.norm_epsilon",
                 "model.rope_theta", "model.rope_scaling.kind", "model.rope_scaling.factor",
                 "model.rope_scaling.low_freq_factor", "model.rope_scaling.high_freq_factor",
                 "model.rope_scaling.original_context"}) == "accepted");
}

TEST_CASE("a model whose tensors are others is told by key, and cannot be allowed",
          "[model_of_checkpoint]") {
  Architecture other = small_llama();
  other.layers = 12;
  other.attention.qkv_bias = true;
  const std::string told = refusal(small_llama(), other, {"model.layers"});
  CHECK_THAT(told, ContainsSubstring("(its tensors are others)") &&
                       ContainsSubstring("\n  model.layers is 12, the checkpoint has 4\n") &&
                       ContainsSubstring("model.qkv_bias is true, the checkpoint has false") &&
                       !ContainsSubstring("--allow-change"));
  CHECK_THAT(refusal(small_llama(), Architecture{}.resolved()),
             ContainsSubstring("model.family is \"gpt2\", the checkpoint has \"llama\""));
  CHECK_THAT(refusal(small_llama(), small_llama(), {"model.layer"}),
             ContainsSubstring("did you mean model.layers?"));
}

TEST_CASE("what changes nothing that weights compute is told and taken", "[model_of_checkpoint]") {
  Architecture other = small_llama();
  other.dropout = 0.1;
  other.context = 128;
  other.positions.rope_scaling.factor = 7;  // of no scaling
  const auto changes = refuse_other_model(small_llama(), other, {}, "ckpt");
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].str() == "model.context: 64 -> 128");
  CHECK(changes[1].str() == "model.dropout: 0.0 -> 0.1");
  // Of a gpt2 the positions are weights.
  Architecture gpt2 = Architecture{}.resolved();
  Architecture longer = gpt2;
  longer.context = 2048;
  CHECK_THAT(refusal(gpt2, longer), ContainsSubstring("model.context is 2048"));
}
