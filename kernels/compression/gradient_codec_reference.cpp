// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/kernels/compression.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace fourfold::kernels::reference {
namespace {

/// Where a block of int8 begins.
std::int64_t block_offset(std::int64_t element) {
  return element / codec_block_elements * (codec_block_elements + sizeof(float));
}

float scale_of(const std::vector<float>& x, std::int64_t begin, std::int64_t end) {
  float largest = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    const float size = std::fabs(x[i]);
    if (!std::isfinite(size)) {
      return std::numeric_limits<float>::quiet_NaN();
    }
    largest = std::max(largest, size);
  }
  return largest < 0x1p-100F ? 0.0F : largest / 127.0F;
}

void encode_int8(const std::vector<float>& x, std::uint8_t* payload) {
  const std::int64_t elements = std::ssize(x);
  for (std::int64_t begin = 0; begin < elements; begin += codec_block_elements) {
    const std::int64_t end = std::min(begin + codec_block_elements, elements);
    const float scale = scale_of(x, begin, end);
    std::uint8_t* const block = payload + block_offset(begin);
    std::memcpy(block, &scale, sizeof(scale));
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = x[i];
      const auto code = static_cast<std::int8_t>(scale > 0 ? std::nearbyint(value / scale) : 0.0F);
      std::memcpy(block + sizeof(scale) + (i - begin), &code, 1);
    }
  }
}

float decoded(GradientCodec codec, const std::uint8_t* payload, std::int64_t i) {
  if (codec == GradientCodec::bf16) {
    BFloat16 value;
    std::memcpy(&value, payload + 2 * i, sizeof(value));
    return static_cast<float>(value);
  }
  const std::uint8_t* const block = payload + block_offset(i);
  float scale = 0;
  std::int8_t code = 0;
  std::memcpy(&scale, block, sizeof(scale));
  std::memcpy(&code, block + sizeof(scale) + i % codec_block_elements, 1);
  return scale * code;
}

}  // namespace

void encode(GradientCodec codec, ConstTensorView gradient, ConstTensorView error, float error_scale,
            TensorView new_error, TensorView payload, device::StreamRef /*stream*/) {
  std::vector<float> x(gradient.elements());
  for (std::int64_t i = 0; i < gradient.elements(); ++i) {
    const float before = error ? error.as<float>()[i] : 0.0F;
    x[i] = gradient.as<float>()[i] + error_scale * before;
  }
  auto* const bytes = payload.as<std::uint8_t>();
  if (codec == GradientCodec::int8) {
    encode_int8(x, bytes);
  } else {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const BFloat16 value(x[i]);
      std::memcpy(bytes + 2 * i, &value, sizeof(value));
    }
  }
  for (std::int64_t i = 0; i < gradient.elements(); ++i) {
    new_error.as<float>()[i] = (x[i] - decoded(codec, bytes, i)) / error_scale;
  }
}

void decode(GradientCodec codec, ConstTensorView payload, TensorView gradient, Write write,
            device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < gradient.elements(); ++i) {
    float& target = gradient.as<float>()[i];
    const float value = decoded(codec, payload.as<std::uint8_t>(), i);
    target = write == Write::accumulate ? target + value : value;
  }
}

}  // namespace fourfold::kernels::reference
