// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/train/text_sampler.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fourfold::train {
namespace {

std::vector<double> as_doubles(ConstTensorView logits) {
  std::vector<double> values(logits.elements());
  const auto convert = [&](const auto* logit) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(logit[i]);
    }
  };
  if (logits.dtype() == DType::bf16) {
    convert(logits.as<BFloat16>());
  } else if (logits.dtype() == DType::f16) {
    convert(logits.as<Float16>());
  } else {
    convert(logits.as<float>());
  }
  return values;
}

}  // namespace

std::int32_t draw_token(ConstTensorView logits_V, const SamplingOptions& options,
                        std::int64_t draw) {
  FOURFOLD_EXPECT(!options.vocab || *options.vocab > 0);
  std::vector<double> logits = as_doubles(logits_V);
  if (options.vocab) {
    logits.resize(std::min<std::size_t>(logits.size(), *options.vocab));
  }
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
  if (options.temperature <= 0) {
    return order.front();
  }
  if (options.top_k > 0 && options.top_k < std::ssize(order)) {
    order.resize(options.top_k);
  }
  const double highest = logits[order.front()];
  std::vector<double> cumulative;
  cumulative.reserve(order.size());
  double sum = 0;
  for (const std::int32_t token : order) {
    sum += std::exp((logits[token] - highest) / options.temperature);
    cumulative.push_back(sum);
  }
  const PhiloxKey key = philox_key(options.seed, RandomUse::sampling);
  const double random = uniform_float(philox(key, draw).word[0]);
  const auto chosen = std::upper_bound(cumulative.begin(), cumulative.end(), random * sum);
  return order[std::min(chosen - cumulative.begin(), std::ssize(order) - 1)];
}

std::int64_t pass_tokens(std::int64_t tokens, std::int64_t context, bool on_device) {
  const std::int64_t step = on_device ? 64 : 1;
  return std::min(context, (tokens + step - 1) / step * step);
}

std::vector<std::int32_t> continue_text(model::Stage& stage, std::int64_t context,
                                        std::span<const std::int32_t> prompt,
                                        const SamplingOptions& options,
                                        const std::function<void(std::int32_t)>& emit,
                                        device::StreamRef stream) {
  FOURFOLD_EXPECT(!prompt.empty());
  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  std::vector<std::int32_t> positions(context);
  std::iota(positions.begin(), positions.end(), 0);
  const device::Tensor token_T(DType::i32, {context});
  const device::Tensor position_T(DType::i32, {context});
  device::copy(position_T.view().data(), positions.data(), position_T.view().bytes(), stream);
  std::vector<std::byte> host_logits;
  std::vector<std::int32_t> drawn;
  for (std::int64_t draw = 0; draw < options.tokens; ++draw) {
    const auto length = std::min(context, std::ssize(text));
    const std::int32_t* window = text.data() + (std::ssize(text) - length);
    device::copy(token_T.view().data(), window, length * sizeof(std::int32_t), stream);
    const std::int64_t passed = pass_tokens(length, context, device::has_own_memory);
    const model::Batch batch{.sequences = 1,
                             .tokens = passed,
                             .token_N = token_T.view().rows(0, passed),
                             .target_N = {},
                             .position_N = position_T.view().rows(0, passed),
                             .sample_N = {}};
    const TensorView logits_1V = stage.predict(batch, length - 1, stream);
    host_logits.resize(logits_1V.bytes());
    device::copy(host_logits.data(), logits_1V.data(), logits_1V.bytes(), stream);
    stream.synchronize();
    const std::int32_t token = draw_token(
        ConstTensorView(host_logits.data(), logits_1V.dtype(), logits_1V.shape()), options, draw);
    if (options.stop_token && token == *options.stop_token) {
      break;
    }
    text.push_back(token);
    drawn.push_back(token);
    emit(token);
  }
  return drawn;
}

}  // namespace fourfold::train
