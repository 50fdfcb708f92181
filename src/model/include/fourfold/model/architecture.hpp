// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/enum_name.hpp>
#include <fourfold/kernels/activation.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::model {

using fourfold::name;  // of what has names_of()

/// How rotary frequencies are stretched for contexts longer than the model was first trained for.
struct RopeScaling {
  /// linear: every frequency is divided by factor. by_wavelength: those of long wavelengths are,
  /// those of short ones are kept, in between they are interpolated.
  enum class Kind : std::uint8_t { none, linear, by_wavelength };
  Kind kind = Kind::none;
  double factor = 1;
  double low_freq_factor = 1;            ///< by_wavelength
  double high_freq_factor = 4;           ///< by_wavelength
  std::int64_t original_context = 8192;  ///< by_wavelength
  friend bool operator==(const RopeScaling&, const RopeScaling&) = default;
};

/// Norms stand before each half of a block, and before the head.
struct NormTraits {
  /// layer: (x - mean) / sqrt(variance + epsilon) * weight + bias. rms: x / sqrt(mean of x^2 +
  /// epsilon) * weight.
  enum class Kind : std::uint8_t { layer, rms };
  Kind kind = Kind::layer;
  double epsilon = 1e-5;
  friend bool operator==(const NormTraits&, const NormTraits&) = default;
};
constexpr auto names_of(NormTraits::Kind /*any*/) {
  using enum NormTraits::Kind;
  return std::to_array<Named<NormTraits::Kind>>({{layer, "layer"}, {rms, "rms"}});
}

/// learned: a row for each position is added to the embedding. rotary: pairs of features of queries
/// and keys are turned. none: attention alone tells what came before.
struct PositionTraits {
  enum class Kind : std::uint8_t { learned, rotary, none };
  Kind kind = Kind::learned;
  double rope_theta = 10000;  ///< rotary: base of the frequencies
  RopeScaling rope_scaling;   ///< rotary
  /// rotary: of so many layers the last has none (Yang et al. 2025, "RNoPE"); 0: all have them
  std::int64_t no_rope_interval = 0;
  bool are_rotary() const noexcept { return kind == Kind::rotary; }
  friend bool operator==(const PositionTraits&, const PositionTraits&) = default;
};
constexpr auto names_of(PositionTraits::Kind /*any*/) {
  using enum PositionTraits::Kind;
  return std::to_array<Named<PositionTraits::Kind>>(
      {{learned, "learned"}, {rotary, "rotary"}, {none, "none"}});
}

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
  std::int64_t width = 0;  ///< 0: 4 * hidden; gated: 8/3 * hidden rounded up to 64
  kernels::Activation activation = kernels::Activation::gelu_tanh;
  bool gated = false;
  friend bool operator==(const FeedForwardTraits&, const FeedForwardTraits&) = default;
};

/// What one layer computes. All layers of a model have the same sizes.
struct LayerTraits {
  NormTraits norm;
  PositionTraits positions;  ///< what its queries and keys pass: rotary, or nothing
  AttentionTraits attention;
  FeedForwardTraits feed_forward;
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

  /// The only place that knows in what layers differ. @pre 0 <= index < layers
  LayerTraits layer(std::int64_t index) const;

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
/// theta^(-2 i / head_dim), changed as rope_scaling says.
std::vector<double> rotary_frequencies(const PositionTraits& positions, std::int64_t head_dim);

/// The table that kernels::rotary reads: row-major [context, head_dim]; row p has the head_dim / 2
/// cosines of p * frequency, then the sines. Computed in double, rounded once.
std::vector<float> rotary_table(const PositionTraits& positions, std::int64_t context,
                                std::int64_t head_dim);

}  // namespace fourfold::model
