// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>

#include <fmt/format.h>

#include <array>
#include <map>
#include <string_view>

namespace fourfold::model_conversion {
namespace {

/// What llm.c calls a parameter of every layer; query, key and value follow each other in one.
const std::map<std::string_view, std::vector<std::string_view>>& names_in_layer() {
  static const std::map<std::string_view, std::vector<std::string_view>> names{
      {"ln1w", {"attn_norm.weight"}},
      {"ln1b", {"attn_norm.bias"}},
      {"qkvw", {"attn.q_proj.weight", "attn.k_proj.weight", "attn.v_proj.weight"}},
      {"qkvb", {"attn.q_proj.bias", "attn.k_proj.bias", "attn.v_proj.bias"}},
      {"attprojw", {"attn.o_proj.weight"}},
      {"attprojb", {"attn.o_proj.bias"}},
      {"ln2w", {"mlp_norm.weight"}},
      {"ln2b", {"mlp_norm.bias"}},
      {"fcw", {"mlp.up_proj.weight"}},
      {"fcb", {"mlp.up_proj.bias"}},
      {"fcprojw", {"mlp.down_proj.weight"}},
      {"fcprojb", {"mlp.down_proj.bias"}}};
  return names;
}

/// The rows of `tensor` shared out evenly among the parameters of all layers, in order.
void add_layers(ExternalTensor& tensor, const std::vector<std::string_view>& names,
                std::int64_t layers) {
  const std::int64_t per_layer = names.size();
  Shape extent = tensor.shape;
  FOURFOLD_EXPECT(extent[0] % (layers * per_layer) == 0);
  extent[0] /= layers * per_layer;
  Shape offset = Shape::filled(extent.rank(), 0);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const std::string_view name : names) {
      tensor.parts.push_back({fmt::format("layers.{}.{}", layer, name), {offset, extent}});
      offset[0] += extent[0];
    }
  }
}

}  // namespace

std::vector<ExternalTensor> llmc_tensors(const model::Architecture& config,
                                         const io::LlmcSizes& sizes) {
  FOURFOLD_EXPECT(sizes.layers == config.layers && sizes.hidden == config.hidden);
  FOURFOLD_EXPECT(sizes.vocab >= config.vocab && sizes.context >= config.context);
  const std::map<std::string_view, std::pair<std::string_view, std::int64_t>> outside{
      {"wte", {model::token_embedding_name, config.vocab}},
      {"wpe", {"embedding.position.weight", config.context}},
      {"lnfw", {"final_norm.weight", config.hidden}},
      {"lnfb", {"final_norm.bias", config.hidden}}};
  std::vector<ExternalTensor> tensors;
  for (auto& [name, shape] : io::llmc_arrays(sizes)) {
    ExternalTensor tensor{name, shape, {}};
    if (const auto found = outside.find(name); found != outside.end()) {
      Shape extent = shape;
      extent[0] = found->second.second;
      tensor.parts.push_back({std::string(found->second.first), Box::whole(extent)});
    } else {
      add_layers(tensor, names_in_layer().at(name), config.layers);
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

}  // namespace fourfold::model_conversion
