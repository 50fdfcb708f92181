// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The kernels of a training step in bf16 at the shapes of the models that are trained, by what
/// they share operands with. A group's operands are freed with its cases.
#pragma once

#include "measure.hpp"

#include <cstdint>
#include <vector>

namespace fourfold::benchmarks {

/// The products of one model's micro-batch.
struct ModelShape {
  const char* name = "";
  std::int64_t rows = 0;  ///< tokens
  std::int64_t hidden = 0;
  std::int64_t qkv = 0;     ///< features of the fused query, key and value
  std::int64_t ffn_up = 0;  ///< of the product into the feed-forward block
  std::int64_t ffn = 0;     ///< into the product out of it
  std::int64_t vocab = 0;   ///< rows of the head's matrix
  bool has_biases = false;
};

struct AttentionSize {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// Rows and columns of what a row-wise kernel works on.
struct RowShape {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
};

struct Sizes {
  std::vector<RowShape> layer_norms;
  RowShape rms_norm;
  RowShape gelu;
  RowShape swiglu;  ///< of its result
  RowShape logits;
  std::int64_t vocabulary = 0;  ///< of the columns of the logits, those that are tokens
  RowShape embeddings;          ///< rows of the batch
  std::int64_t parameters = 0;
  std::int64_t copied_bytes = 0;
  std::int64_t product = 0;  ///< m, n and k of the one that is the roof
  std::vector<AttentionSize> attentions;
  AttentionSize rotated;
  std::vector<ModelShape> models;
};
/// GPT-2 124M, 350M and 1.5B, and Llama 3 8B.
Sizes sizes_of_models();
/// That try the program.
Sizes tiny_sizes();

CaseGroup copy_roof(const Sizes& sizes);
CaseGroup product_roof(const Sizes& sizes);

CaseGroup layer_norm_cases(const RowShape& shape);
CaseGroup rms_norm_cases(const Sizes& sizes);
CaseGroup gelu_cases(const Sizes& sizes);
CaseGroup swiglu_cases(const Sizes& sizes);
CaseGroup column_sum_cases(const Sizes& sizes);
CaseGroup rotary_cases(const Sizes& sizes);
CaseGroup embedding_cases(const Sizes& sizes);
CaseGroup cross_entropy_cases(const Sizes& sizes);
CaseGroup optimizer_cases(const Sizes& sizes);
CaseGroup attention_cases(const AttentionSize& size);
/// Of each linear layer the product forward, the gradient of its input, and the gradient of its
/// weight, added up in f32; beside the first two GELU and its derivative, where the model has that;
/// `layer` counts from 0 to linear_layers - 1.
CaseGroup product_cases(const ModelShape& model, int layer);
inline constexpr int linear_layers = 5;

}  // namespace fourfold::benchmarks
