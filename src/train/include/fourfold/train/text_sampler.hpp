// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/stage.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fourfold::train {

struct SamplingOptions {
  std::int64_t tokens = 200;  ///< the most to draw
  double temperature = 0.8;   ///< logits are divided by it; 0 takes the likeliest token each time
  std::int64_t top_k = 0;     ///< only the k likeliest tokens may come; 0: all
  std::uint64_t seed = 0;
  /// Tokens of the tokenizer; those that only the model has (its vocabulary may be rounded up) are
  /// never drawn. Nothing: all of the model's may come. Positive
  std::optional<std::int32_t> vocab = {};
  std::optional<std::int32_t> stop_token = {};  ///< drawing it ends the text; it is not given out
};

/// Draws a token from softmax(logits / temperature) over the top_k likeliest of the tokenizer's
/// tokens (ties: lower numbers first). `draw` is the number of the draw: with the seed it fixes the
/// random number.
/// @param logits_V  host memory, f32, bf16 or f16, any shape
std::int32_t draw_token(ConstTensorView logits_V, const SamplingOptions& options,
                        std::int64_t draw);

/// Tokens that a pass over `tokens` of them takes, those after them without effect: on a device,
/// where products and attention make a plan for each length, in steps of 64.
std::int64_t pass_tokens(std::int64_t tokens, std::int64_t context, bool on_device);

/// Continues `prompt` token by token; every new token is handed to `emit` at once. The model sees
/// the last `context` tokens. The same seed and prompt give the same text.
/// @param stage  with all units, holding at least one sequence of `context` tokens
/// @pre !prompt.empty()
std::vector<std::int32_t> continue_text(model::Stage& stage, std::int64_t context,
                                        std::span<const std::int32_t> prompt,
                                        const SamplingOptions& options,
                                        const std::function<void(std::int32_t)>& emit,
                                        device::StreamRef stream);

}  // namespace fourfold::train
