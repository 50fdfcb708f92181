// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::model {

/// How rotary frequencies are stretched for contexts longer than the model was first trained for.
struct RopeScaling {
  /// linear: every frequency is divided by factor. llama3: long wavelengths are divided by factor,
  /// short ones kept, in between interpolated (as Llama 3.1 does).
  /// by_wavelength: long wavelengths are stretched, short ones are not ("llama3" in run files)
  enum class Kind : std::uint8_t { none, linear, by_wavelength };
  Kind kind = Kind::none;
  double factor = 1;
  double low_freq_factor = 1;            ///< by_wavelength
  double high_freq_factor = 4;           ///< by_wavelength
  std::int64_t original_context = 8192;  ///< by_wavelength
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};
std::string_view name(RopeScaling::Kind kind) noexcept;

/// Norms stand before each half of a block, and before the head.
struct NormTraits {
  /// layer: (x - mean) / sqrt(variance + epsilon) * weight + bias. rms: x / sqrt(mean of x^2 +
  /// epsilon) * weight.
  enum class Kind : std::uint8_t { layer, rms };
  Kind kind = Kind::layer;
  double epsilon = 1e-5;
  friend bool operator==(const NormTraits&, const NormTraits&) = default;
};

/// learned: a row for each position is added to the embedding. rotary: pairs of features of queries
/// and keys are turned.
struct PositionTraits {
  enum class Kind : std::uint8_t { learned, rotary };
  Kind kind = Kind::learned;
  double rope_theta = 10000;  ///< rotary: base of the frequencies
  RopeScaling rope_scaling;   ///< rotary
  bool are_rotary() const noexcept { return kind == Kind::rotary; }
  friend bool operator==(const PositionTraits&, const PositionTraits&) = default;
};

struct AttentionTraits {
  std::int64_t heads = 12;
  std::int64_t kv_heads = 0;  ///< 0: heads. Fewer than heads: grouped-query attention
  std::int64_t head_dim = 0;  ///< 0: hidden / heads
  bool qkv_bias = false;      ///< of q_proj, k_proj, v_proj, where a model has no biases else
  /// Queries and keys of each head pass an RMS norm with weights of their own, [head_dim], in front
  /// of rotary positions.
  bool qk_norm = false;
  friend bool operator==(const AttentionTraits&, const AttentionTraits&) = default;
};

/// down(activation(up(x))), or gated: down(activation(gate(x)) * up(x)).
struct FeedForwardTraits {
  enum class Activation : std::uint8_t { gelu_tanh, silu };
  std::int64_t width = 0;  ///< 0: 4 * hidden; gated: 8/3 * hidden rounded up to 64
  Activation activation = Activation::gelu_tanh;
  bool gated = false;
  friend bool operator==(const FeedForwardTraits&, const FeedForwardTraits&) = default;
};

/// What a decoder is, independent of any mesh. A value; families and published shapes are named
/// ones (presets.hpp). The run file's [model] table has the same keys. Fields that say "0: ..." are
/// filled in by resolved().
struct Architecture {
  std::int64_t layers = 12;
  std::int64_t hidden = 768;
  std::int64_t vocab = 50257;
  std::int64_t context = 1024;
  /// of embeddings and of both residual branches; attention probabilities are never dropped
  double dropout = 0;
  NormTraits norm;
  PositionTraits positions;
  AttentionTraits attention;
  FeedForwardTraits feed_forward;
  bool biases = true;          ///< of all linear layers of the blocks
  bool tie_embeddings = true;  ///< lm_head reads embedding.token.weight

  /// Names of parameters that are not trained (parameter_table.hpp); patterns as of
  /// fnmatch(3). Of those that one matmul reads, all or none.
  std::vector<std::string> frozen = {};

  bool has_qkv_bias() const noexcept { return biases || attention.qkv_bias; }

  /// This configuration with derived fields filled in, validated.
  /// @throws UserError (exit code config) naming the key, the reason and a value that works
  Architecture resolved() const;

  /// Checks a configuration whose fields are all filled in. Same errors as resolved().
  void validate() const;

  friend bool operator==(const Architecture&, const Architecture&) = default;
};

/// Checks what the kernels of this build ask of a model beside: on a device a head of at most
/// kernels::most_head_dim() features. What is only stored need not fit it.
/// @throws UserError (exit code config) likewise
void validate_for_device(const Architecture& config);

/// Numbers in parameters, frozen ones too, each counted once (tied embeddings once).
std::int64_t parameter_count(const Architecture& config);

/// Parameters that take part in a product for every token: all matrices of the blocks and the
/// language-model head (tied or not); not the embedding look-ups, norms and biases.
std::int64_t product_parameter_count(const Architecture& config);

/// Model FLOPs of one token of a training step (forward and backward) for sequences of `tokens`:
/// 6 N + 6 layers * heads * head_dim * tokens, N = product_parameter_count(): causal attention
/// counted as half the square, recomputation not counted (the convention of llm.c and Megatron-LM).
double flops_per_token(const Architecture& config, std::int64_t tokens);

/// Rotation speeds of a head's head_dim / 2 feature pairs in radians per position:
/// theta^(-2 i / head_dim), changed as rope_scaling says (llama3: the formula of Llama 3.1).
std::vector<double> rotary_frequencies(const Architecture& config);

/// The table that kernels::rotary reads: row-major [context, head_dim]; row p has the head_dim / 2
/// cosines of p * frequency, then the sines. Computed in double, rounded once.
std::vector<float> rotary_table(const Architecture& config);

}  // namespace fourfold::model
