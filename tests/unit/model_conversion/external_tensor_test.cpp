// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"

#include <fourfold/io/llmc_checkpoint.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <map>
#include <set>

using fourfold::Box;
using fourfold::Shape;
using fourfold::model_conversion::ExternalTensor;
using fourfold::model_conversion::Part;

namespace model = fourfold::model;
namespace model_conversion = fourfold::model_conversion;

namespace {

/// Every parameter is in one place of the same size, no two places share an element, and the rest
/// is `padding` elements.
void check_covers(const model::Architecture& config, const std::vector<ExternalTensor>& tensors,
                  std::int64_t padding) {
  std::map<std::string, Shape> missing;
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    missing.emplace(spec.name, spec.shape);
  }
  std::set<std::string> names;
  std::int64_t elements = 0;
  for (const ExternalTensor& tensor : tensors) {
    CHECK(names.insert(tensor.name).second);
    elements += tensor.shape.elements();
    for (std::size_t i = 0; i < tensor.parts.size(); ++i) {
      const Part& part = tensor.parts[i];
      INFO(tensor.name << ": " << part.name);
      REQUIRE(missing.contains(part.name));
      Shape shape = missing.at(part.name);
      if (part.transposed) {
        shape = Shape{shape[1], shape[0]};
      }
      CHECK(shape == part.place.extent);
      CHECK(contains(Box::whole(tensor.shape), part.place));
      for (std::size_t j = 0; j < i; ++j) {
        CHECK(!intersect(part.place, tensor.parts[j].place));
      }
      missing.erase(part.name);
    }
  }
  CHECK(missing.empty());
  CHECK(elements == model::parameter_count(config) + padding);
}

}  // namespace

TEST_CASE("Hugging Face's tensors hold every parameter once") {
  model::Architecture config =
      GENERATE(fourfold::harness::gpt2_model(), fourfold::harness::llama_model());
  config.tie_embeddings = GENERATE(false, true);
  if (family_of(config) == model::Family::llama) {
    const int kind = GENERATE(0, 1, 2);
    config.attention.qkv_bias = kind == 1;
    config.attention.qk_norm = kind == 2;
  }
  const bool has_positions = family_of(config) == model::Family::gpt2;
  const std::int64_t tables = config.tie_embeddings ? 1 : 2;
  check_covers(config, model_conversion::hf_tensors(config, 131, 11), 0);
  check_covers(config, model_conversion::hf_tensors(config, 192, 16),
               config.hidden * (61 * tables + (has_positions ? 5 : 0)));
}

TEST_CASE("llm.c's tensors hold every parameter once") {
  const model::Architecture config = fourfold::harness::gpt2_model();
  const fourfold::io::LlmcSizes sizes{
      .context = 13, .vocab = 140, .padded_vocab = 256, .layers = 3, .heads = 5, .hidden = 30};
  check_covers(config, model_conversion::llmc_tensors(config, sizes), 30 * (125 + 2));
}

TEST_CASE("GPT-2's query, key and value stand side by side, turned") {
  const model::Architecture config = fourfold::harness::gpt2_model();
  for (const ExternalTensor& tensor : model_conversion::hf_tensors(config, 131, 11)) {
    if (tensor.name == "transformer.h.1.attn.c_attn.weight") {
      REQUIRE(tensor.parts.size() == 3);
      CHECK(tensor.shape == Shape{30, 90});
      CHECK(tensor.parts[2].name == "layers.1.attn.v_proj.weight");
      CHECK(tensor.parts[2].place == Box{{0, 60}, {30, 30}});
      CHECK(tensor.parts[2].transposed);
    }
  }
}
