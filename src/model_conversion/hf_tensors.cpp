// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>
#include <fourfold/model_conversion/hf_config.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace fourfold::model_conversion {
namespace {

/// What a module of ours is called; those of a layer without the layer's name in front.
using Names = std::map<std::string_view, std::string_view>;

/// Query, key and value stand side by side in one.
const Names gpt2_names{{"embedding.token", "transformer.wte"},
                       {"embedding.position", "transformer.wpe"},
                       {"attn_norm", "ln_1"},
                       {"attn.q_proj", "attn.c_attn"},
                       {"attn.k_proj", "attn.c_attn"},
                       {"attn.v_proj", "attn.c_attn"},
                       {"attn.o_proj", "attn.c_proj"},
                       {"mlp_norm", "ln_2"},
                       {"mlp.up_proj", "mlp.c_fc"},
                       {"mlp.down_proj", "mlp.c_proj"},
                       {"final_norm", "transformer.ln_f"},
                       {"lm_head", "lm_head"}};

const Names llama_names{{"embedding.token", "model.embed_tokens"},
                        {"attn_norm", "input_layernorm"},
                        {"attn.q_proj", "self_attn.q_proj"},
                        {"attn.k_proj", "self_attn.k_proj"},
                        {"attn.v_proj", "self_attn.v_proj"},
                        {"attn.q_norm", "self_attn.q_norm"},
                        {"attn.k_norm", "self_attn.k_norm"},
                        {"attn.o_proj", "self_attn.o_proj"},
                        {"mlp_norm", "post_attention_layernorm"},
                        {"mlp.gate_proj", "mlp.gate_proj"},
                        {"mlp.up_proj", "mlp.up_proj"},
                        {"mlp.down_proj", "mlp.down_proj"},
                        {"final_norm", "model.norm"},
                        {"lm_head", "lm_head"}};

constexpr std::string_view layer_prefix = "layers.";

/// @param ours  "layers.17.attn.q_proj.weight"
std::string their_name(std::string_view ours, bool is_gpt2) {
  std::string theirs;
  if (ours.starts_with(layer_prefix)) {
    ours.remove_prefix(layer_prefix.size());
    const std::string_view number = ours.substr(0, ours.find('.'));
    theirs = fmt::format("{}{}.", is_gpt2 ? "transformer.h." : "model.layers.", number);
    ours.remove_prefix(number.size() + 1);
  }
  const std::size_t dot = ours.rfind('.');
  theirs += (is_gpt2 ? gpt2_names : llama_names).at(ours.substr(0, dot));
  return theirs.append(ours.substr(dot));
}

}  // namespace

std::vector<ExternalTensor> hf_tensors(const model::Architecture& config, std::int64_t vocab_rows,
                                       std::int64_t position_rows) {
  FOURFOLD_EXPECT(vocab_rows >= config.vocab && position_rows >= config.context);
  const bool is_gpt2 = hf_class_of(config) == HfClass::gpt2;
  std::vector<ExternalTensor> tensors;
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    Shape shape = spec.shape;
    const bool is_of_layer = 1 <= spec.unit && spec.unit <= config.layers;
    const bool is_turned =
        is_gpt2 && spec.kind == model::ParameterKind::matrix && is_of_layer;  // Conv1D: [in, out]
    if (is_turned) {
      std::swap(shape[0], shape[1]);
    }
    Part part{spec.name, Box::whole(shape), is_turned};
    std::string name = their_name(spec.name, is_gpt2);
    const auto fused = std::find_if(tensors.rbegin(), tensors.rend(),
                                    [&](const ExternalTensor& one) { return one.name == name; });
    if (fused != tensors.rend()) {
      std::int64_t& columns = fused->shape[shape.rank() - 1];
      part.place.offset[shape.rank() - 1] = columns;
      columns += shape[shape.rank() - 1];
      fused->parts.push_back(std::move(part));
      continue;
    }
    if (spec.cut && spec.cut->unit == model::TensorCut::Unit::vocabulary_row) {
      shape[0] = vocab_rows;
    } else if (spec.kind == model::ParameterKind::embedding) {
      shape[0] = position_rows;
    }
    tensors.push_back({std::move(name), shape, {std::move(part)}});
  }
  return tensors;
}

}  // namespace fourfold::model_conversion
