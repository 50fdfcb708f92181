// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Models as transformers saved them (tests/golden/make_hf_goldens.py), whose weights are a closed
/// form of our names: each element must come to its place, and go back to where it was.
#include "models.hpp"
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/io/safetensors.hpp>
#include <fourfold/model_conversion/export.hpp>
#include <fourfold/model_conversion/external_source.hpp>
#include <fourfold/model_conversion/import.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <string>
#include <vector>

using fourfold::harness::ScratchFolder;
using fourfold::io::SafetensorsFolder;
using fourfold::io::StoredArray;
using fourfold::model_conversion::ExternalModel;

namespace model = fourfold::model;
namespace model_conversion = fourfold::model_conversion;

namespace {

struct Case {
  const char* name;
  std::uint64_t seed;
};

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(fourfold::harness::golden_folder()) / "hf" / name;
}

/// `draw` of make_goldens.py.
float drawn(std::uint64_t seed, const model::ParameterSpec& spec, std::int64_t element) {
  const auto key = fourfold::philox_key(seed, fourfold::RandomUse::initial_weight,
                                        fourfold::name_salt(spec.name.data(), spec.name.size()));
  const float std = spec.shape.rank() == 2 ? 0.25F : 0.2F;
  const float mean = spec.name.ends_with("norm.weight") ? 1.0F : 0.0F;
  return mean + std * fourfold::normal_float(key, static_cast<std::uint64_t>(element));
}

std::vector<std::byte> bytes_of(const StoredArray& array) {
  std::vector<std::byte> bytes(array.bytes());
  array.read(0, bytes);
  return bytes;
}

}  // namespace

TEST_CASE("transformers' models: every element comes to its place and goes back") {
  const Case golden_case =
      GENERATE(Case{"gpt2_odd_heads", 1000}, Case{"gpt2_untied", 1001}, Case{"llama_grouped", 1003},
               Case{"llama_qkv_bias", 1006}, Case{"llama_qk_norm", 1007},
               Case{"llama_geglu_biases", 1009}, Case{"llama_no_rope", 1010});
  INFO(golden_case.name);
  const ExternalModel imported = model_conversion::open_hf(golden(golden_case.name), {});
  for (const model::ParameterSpec& spec : model::parameter_table(imported.config)) {
    const std::vector<float> values = fourfold::harness::read_whole(*imported.source, spec);
    double worst = 0;
    for (std::int64_t i = 0; i < spec.shape.elements(); ++i) {
      worst = std::max<double>(
          worst, std::abs(values[static_cast<std::size_t>(i)] - drawn(golden_case.seed, spec, i)));
    }
    INFO(spec.name);
    CHECK(worst < 1e-6);  // other libraries' log and cos
  }

  const ScratchFolder scratch;
  std::int64_t told = 0;
  const auto plan = model_conversion::plan_hf_export(
      imported.config, {.shard_bytes = GENERATE(std::int64_t{1}, 9000, 5'000'000'000)});
  model_conversion::write_export(plan, *imported.source, scratch / "out", 1 << 20,
                                 [&](std::int64_t done) { told = done; });
  const SafetensorsFolder before(golden(golden_case.name));
  const SafetensorsFolder after(scratch / "out");
  REQUIRE(after.arrays().size() == before.arrays().size());
  std::int64_t bytes = 0;
  for (const StoredArray& array : before.arrays()) {
    INFO(array.name());
    const StoredArray* const other = after.find(array.name());
    REQUIRE(other != nullptr);
    CHECK(other->type() == array.type());
    CHECK(other->shape() == array.shape());
    CHECK(bytes_of(*other) == bytes_of(array));
    bytes += static_cast<std::int64_t>(array.bytes());
  }
  CHECK(told == bytes);
  CHECK(model_conversion::open_hf(scratch / "out", {}).config == imported.config);
}

TEST_CASE("whatever byte of a config.json is changed, what is accepted can be read") {
  const ScratchFolder scratch;
  std::filesystem::copy(golden("llama_grouped"), scratch / "m");
  const std::string text = fourfold::harness::read_bytes(golden("llama_grouped") / "config.json");
  int accepted = 0;
  const auto attempt = [&](const std::string& changed) {
    fourfold::harness::write_bytes(scratch / "m" / "config.json", changed);
    try {
      const ExternalModel model = model_conversion::open_hf(scratch / "m", {});
      ++accepted;
      for (const model::ParameterSpec& spec : model::parameter_table(model.config)) {
        fourfold::harness::read_whole(*model.source, spec);
      }
    } catch (const fourfold::UserError& error) {
      CHECK(std::string(error.what()).size() < 1000);
    }
  };
  for (std::size_t place = 0; place < text.size(); ++place) {
    for (const char replacement : std::string("\0\"019[]{},:-.e\xff", 15)) {
      std::string changed = text;
      changed[place] = replacement;
      attempt(changed);
    }
    attempt(text.substr(0, place));
  }
  CHECK(accepted > 100);  // keys that say nothing, other epsilons, ...
}
