// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"
#include "storage.hpp"

#include <fourfold/kernels/gradient_codec.hpp>

#include <Kokkos_Core.hpp>

#include <cstring>
#include <limits>

namespace fourfold::kernels {
namespace {

constexpr int block_elements = static_cast<int>(codec_block_elements);
constexpr std::int64_t block_bytes = block_elements + static_cast<std::int64_t>(sizeof(float));

/// The operands of encode().
struct Source {
  const float* gradient;
  const float* error;  ///< or nullptr
  float error_scale;
  float* new_error;

  KOKKOS_FORCEINLINE_FUNCTION float at(std::int64_t i) const {
    return error == nullptr ? gradient[i] : gradient[i] + error_scale * error[i];
  }
};

struct EncodeBf16 {
  Source source;
  BFloat16* payload;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const float unscale = 1.0F / source.error_scale;
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float x = source.at(i);
      const std::uint32_t word = bfloat16_word(x);
      payload[i].bits = static_cast<std::uint16_t>(word >> 16);
      source.new_error[i] = (x - float_from_bits(word & 0xFFFF0000U)) * unscale;
    }
  }
};

/// The scale of a block whose largest magnitude has these bits.
KOKKOS_FORCEINLINE_FUNCTION float block_scale(std::uint32_t largest_bits) {
  const float largest = float_from_bits(largest_bits);
  if (largest_bits >= 0x7F800000U) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return largest < 0x1p-100F ? 0.0F : largest / 127.0F;
}

struct EncodeInt8 {
  Source source;
  std::byte* payload;
  std::int64_t elements;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t begin = index * codec_block_elements;
    const std::int64_t left = elements - begin;
    const int count = left < block_elements ? static_cast<int>(left) : block_elements;
    float x[block_elements];
    // As integers magnitudes have the order of the numbers, and NaN comes after infinity.
    std::uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (int i = 0; i < count; ++i) {
      x[i] = source.at(begin + i);
      const std::uint32_t magnitude = float_bits(x[i]) & 0x7FFFFFFFU;
      largest = magnitude > largest ? magnitude : largest;
    }
    const float scale = block_scale(largest);
    std::byte* const block = payload + index * block_bytes;
    std::memcpy(block, &scale, sizeof(scale));
    write_codes(x, count, scale, reinterpret_cast<std::int8_t*>(block + sizeof(scale)),
                source.new_error + begin);
  }

  KOKKOS_FORCEINLINE_FUNCTION void write_codes(const float* x, int count, float scale,
                                               std::int8_t* codes, float* new_error) const {
    const float inverse = scale > 0 ? 1.0F / scale : 0.0F;
    const float unscale = 1.0F / source.error_scale;
    // Adding 1.5 * 2^23 rounds to an integer in the low bits.
    constexpr float shift = 12582912.0F;
#pragma omp simd
    for (int i = 0; i < count; ++i) {
      const auto code =
          static_cast<std::int32_t>(float_bits(x[i] * inverse + shift) - float_bits(shift));
      codes[i] = static_cast<std::int8_t>(code);
      new_error[i] = (x[i] - scale * static_cast<float>(code)) * unscale;
    }
  }
};

template <Write write>
KOKKOS_FORCEINLINE_FUNCTION void put(float& target, float value) {
  target = write == Write::accumulate ? target + value : value;
}

template <Write write>
struct DecodeBf16 {
  const BFloat16* payload;
  float* gradient;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      put<write>(gradient[i], to_float(payload[i]));
    }
  }
};

template <Write write>
struct DecodeInt8 {
  const std::byte* payload;
  float* gradient;
  std::int64_t elements;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t begin = index * codec_block_elements;
    const std::int64_t left = elements - begin;
    const int count = left < block_elements ? static_cast<int>(left) : block_elements;
    const std::byte* const block = payload + index * block_bytes;
    float scale;
    std::memcpy(&scale, block, sizeof(scale));
    const auto* const codes = reinterpret_cast<const std::int8_t*>(block + sizeof(scale));
#pragma omp simd
    for (int i = 0; i < count; ++i) {
      put<write>(gradient[begin + i], scale * static_cast<float>(codes[i]));
    }
  }
};

template <Write write>
void decode_as(GradientCodec codec, ConstTensorView payload, TensorView gradient,
               device::StreamRef stream) {
  const std::int64_t elements = gradient.elements();
  if (codec == GradientCodec::bf16) {
    for_each_block(
        "decode_bf16", elements, stream,
        DecodeBf16<write>{static_cast<const BFloat16*>(payload.data()), gradient.as<float>()});
    return;
  }
  for_each("decode_int8", (elements + block_elements - 1) / block_elements, stream,
           DecodeInt8<write>{static_cast<const std::byte*>(payload.data()), gradient.as<float>(),
                             elements});
}

}  // namespace

std::int64_t payload_bytes(GradientCodec codec, std::int64_t elements) noexcept {
  const std::int64_t blocks = (elements + codec_block_elements - 1) / codec_block_elements;
  const std::int64_t bytes = codec == GradientCodec::bf16
                                 ? 2 * elements
                                 : elements + blocks * static_cast<std::int64_t>(sizeof(float));
  return (bytes + 3) / 4 * 4;
}

void encode(GradientCodec codec, ConstTensorView gradient, ConstTensorView error, float error_scale,
            TensorView new_error, TensorView payload, device::StreamRef stream) {
  const std::int64_t elements = gradient.elements();
  FOURFOLD_EXPECT(!error || error.elements() == elements);
  FOURFOLD_EXPECT(new_error.elements() == elements && error_scale > 0);
  FOURFOLD_EXPECT(payload.dtype() == DType::u8 &&
                  payload.elements() == payload_bytes(codec, elements));
  const Source source{gradient.as<float>(), error ? error.as<float>() : nullptr, error_scale,
                      new_error.as<float>()};
  if (codec == GradientCodec::bf16) {
    for_each_block("encode_bf16", elements, stream,
                   EncodeBf16{source, static_cast<BFloat16*>(payload.data())});
    return;
  }
  for_each("encode_int8", (elements + block_elements - 1) / block_elements, stream,
           EncodeInt8{source, static_cast<std::byte*>(payload.data()), elements});
}

void decode(GradientCodec codec, ConstTensorView payload, TensorView gradient, Write write,
            device::StreamRef stream) {
  FOURFOLD_EXPECT(payload.dtype() == DType::u8 &&
                  payload.elements() == payload_bytes(codec, gradient.elements()));
  if (write == Write::accumulate) {
    decode_as<Write::accumulate>(codec, payload, gradient, stream);
  } else {
    decode_as<Write::replace>(codec, payload, gradient, stream);
  }
}

}  // namespace fourfold::kernels
