// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace fourfold::model_conversion {
namespace {

/// Writes the table of one model, in the order of its layers.
class Table {
 public:
  Table(const model::Architecture& config, const TableRows& rows)
      : config_(config),
        rows_(rows),
        query_(config.attention.heads * config.attention.head_dim),
        key_(config.attention.kv_heads * config.attention.head_dim) {}

  std::vector<ExternalTensor> gpt2() {
    const std::int64_t hidden = config_.hidden;
    embedding("transformer.wte.weight", model::token_embedding_name, rows_.vocab, config_.vocab);
    embedding("transformer.wpe.weight", "embedding.position.weight", rows_.positions,
              config_.context);
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string theirs = fmt::format("transformer.h.{}.", layer);
      const std::string ours = fmt::format("layers.{}.", layer);
      norm(theirs + "ln_1", ours + "attn_norm");
      fused(theirs + "attn.c_attn", ours + "attn.");
      conv(theirs + "attn.c_proj", ours + "attn.o_proj", hidden, query_);
      norm(theirs + "ln_2", ours + "mlp_norm");
      conv(theirs + "mlp.c_fc", ours + "mlp.up_proj", config_.feed_forward.width, hidden);
      conv(theirs + "mlp.c_proj", ours + "mlp.down_proj", hidden, config_.feed_forward.width);
    }
    norm("transformer.ln_f", "final_norm");
    head();
    return std::move(tensors_);
  }

  std::vector<ExternalTensor> llama() {
    const std::int64_t hidden = config_.hidden;
    embedding("model.embed_tokens.weight", model::token_embedding_name, rows_.vocab, config_.vocab);
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      const std::string theirs = fmt::format("model.layers.{}.", layer);
      const std::string ours = fmt::format("layers.{}.", layer);
      same(theirs + "input_layernorm.weight", ours + "attn_norm.weight", {hidden});
      for (const auto& [which, out] : {std::pair{'q', query_}, {'k', key_}, {'v', key_}}) {
        const std::string theirs_linear = fmt::format("{}self_attn.{}_proj.", theirs, which);
        const std::string ours_linear = fmt::format("{}attn.{}_proj.", ours, which);
        same(theirs_linear + "weight", ours_linear + "weight", {out, hidden});
        if (config_.attention.qkv_bias) {
          same(theirs_linear + "bias", ours_linear + "bias", {out});
        }
      }
      if (config_.attention.qk_norm) {
        for (const char* const which : {"q_norm.weight", "k_norm.weight"}) {
          same(theirs + "self_attn." + which, ours + "attn." + which, {config_.attention.head_dim});
        }
      }
      same(theirs + "self_attn.o_proj.weight", ours + "attn.o_proj.weight", {hidden, query_});
      same(theirs + "post_attention_layernorm.weight", ours + "mlp_norm.weight", {hidden});
      same(theirs + "mlp.gate_proj.weight", ours + "mlp.gate_proj.weight",
           {config_.feed_forward.width, hidden});
      same(theirs + "mlp.up_proj.weight", ours + "mlp.up_proj.weight",
           {config_.feed_forward.width, hidden});
      same(theirs + "mlp.down_proj.weight", ours + "mlp.down_proj.weight",
           {hidden, config_.feed_forward.width});
    }
    same("model.norm.weight", "final_norm.weight", {hidden});
    head();
    return std::move(tensors_);
  }

 private:
  void same(std::string theirs, std::string ours, const Shape& shape) {
    tensors_.push_back({std::move(theirs), shape, {{std::move(ours), Box::whole(shape)}}});
  }
  void embedding(std::string theirs, std::string ours, std::int64_t their_rows,
                 std::int64_t our_rows) {
    FOURFOLD_EXPECT(their_rows >= our_rows);
    tensors_.push_back({std::move(theirs),
                        {their_rows, config_.hidden},
                        {{std::move(ours), Box::whole({our_rows, config_.hidden})}}});
  }
  void head() {
    if (!config_.tie_embeddings) {
      embedding("lm_head.weight", "lm_head.weight", rows_.vocab, config_.vocab);
    }
  }
  void norm(const std::string& theirs, const std::string& ours) {
    same(theirs + ".weight", ours + ".weight", {config_.hidden});
    same(theirs + ".bias", ours + ".bias", {config_.hidden});
  }
  void conv(const std::string& theirs, const std::string& ours, std::int64_t out, std::int64_t in) {
    const Shape shape{in, out};
    tensors_.push_back({theirs + ".weight", shape, {{ours + ".weight", Box::whole(shape), true}}});
    same(theirs + ".bias", ours + ".bias", {out});
  }
  void fused(const std::string& theirs, const std::string& ours) {
    const std::int64_t hidden = config_.hidden;
    ExternalTensor weight{theirs + ".weight", {hidden, query_ + 2 * key_}, {}};
    ExternalTensor bias{theirs + ".bias", {query_ + 2 * key_}, {}};
    std::int64_t column = 0;
    for (const auto& [which, out] : {std::pair{'q', query_}, {'k', key_}, {'v', key_}}) {
      const std::string name = fmt::format("{}{}_proj.", ours, which);
      weight.parts.push_back({name + "weight", {{0, column}, {hidden, out}}, true});
      bias.parts.push_back({name + "bias", {{column}, {out}}});
      column += out;
    }
    tensors_.push_back(std::move(weight));
    tensors_.push_back(std::move(bias));
  }

  const model::Architecture& config_;
  TableRows rows_;
  std::int64_t query_;
  std::int64_t key_;
  std::vector<ExternalTensor> tensors_;
};

}  // namespace

std::vector<ExternalTensor> hf_tensors(const model::Architecture& config, const TableRows& rows) {
  Table table(config, rows);
  return family_of(config) == model::Family::gpt2 ? table.gpt2() : table.llama();
}

}  // namespace fourfold::model_conversion
