// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::model {

/// gpt2: layer_norm, learned positions, biases everywhere, gelu (Radford et al. 2019).
/// llama: rms_norm, rotary positions, no biases (query/key/value biases on request), swiglu
/// (Touvron et al. 2023).
enum class Family : std::uint8_t { gpt2, llama };
std::string_view name(Family family) noexcept;

/// How rotary frequencies are stretched for contexts longer than the model was first trained for.
struct RopeScaling {
  /// linear: every frequency is divided by factor. llama3: long wavelengths are divided by factor,
  /// short ones kept, in between interpolated (as Llama 3.1 does).
  enum class Kind : std::uint8_t { none, linear, llama3 };
  Kind kind = Kind::none;
  double factor = 1;
  double low_freq_factor = 1;            ///< llama3
  double high_freq_factor = 4;           ///< llama3
  std::int64_t original_context = 8192;  ///< llama3
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};
std::string_view name(RopeScaling::Kind kind) noexcept;

/// What a model is, independent of any mesh. A value. The run file's [model] table has the same
/// keys. Fields that say "0: ..." are filled in by resolved().
struct ModelConfig {
  Family family = Family::gpt2;
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t heads = 12;
  std::int64_t kv_heads = 0;  ///< 0: heads. Fewer than heads: grouped-query attention
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  std::int64_t ffn = 0;       ///< 0: 4 * hidden (gpt2); llama: 8/3 * hidden rounded up to 64
  std::int64_t vocab = 50257;
  std::int64_t context = 1024;
  /// of embeddings and of both residual branches; attention probabilities are never dropped
  double dropout = 0;
  double norm_epsilon = 1e-5;
  bool tie_embeddings = true;  ///< lm_head reads embedding.token.weight
  double rope_theta = 10000;   ///< llama
  RopeScaling rope_scaling;    ///< llama
  bool qkv_bias = false;       ///< llama: biases of q_proj, k_proj, v_proj (as Qwen 2 has them)

  /// This configuration with derived fields filled in, validated.
  /// @throws UserError (exit code config) naming the key, the reason and a value that works
  ModelConfig resolved() const;

  /// Checks a configuration whose fields are all filled in. Same errors as resolved().
  void validate() const;

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;
};

/// Checks what the kernels of this build ask of a model beside: on a device a head of at most
/// kernels::most_head_dim() features. What is only stored need not fit it.
/// @throws UserError (exit code config) likewise
void validate_for_device(const ModelConfig& config);

/// A published shape by name: "gpt2-124m", "gpt2-350m", "gpt2-774m", "gpt2-1558m", "llama-15m",
/// "llama-2-7b", "llama-3-8b", "llama-3.1-8b", "llama-3.2-1b". Resolved.
/// @throws UserError (exit code config) with the known names and the nearest one
ModelConfig preset(std::string_view preset_name);
const std::vector<std::string>& preset_names();

/// Trainable numbers, each counted once (tied embeddings once).
std::int64_t parameter_count(const ModelConfig& config);

/// Parameters that take part in a product for every token: all matrices of the blocks and the
/// language-model head (tied or not); not the embedding look-ups, norms and biases.
std::int64_t product_parameter_count(const ModelConfig& config);

/// Model FLOPs of one token of a training step (forward and backward) for sequences of `tokens`:
/// 6 N + 6 layers * heads * head_dim * tokens, N = product_parameter_count(): causal attention
/// counted as half the square, recomputation not counted (the convention of llm.c and Megatron-LM).
double flops_per_token(const ModelConfig& config, std::int64_t tokens);

}  // namespace fourfold::model
