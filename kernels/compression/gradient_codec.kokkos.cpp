// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch.hpp"
#include "vectors/for_each_pack.hpp"

#include <fourfold/kernels/compression.hpp>

#include <Kokkos_Core.hpp>

#include <limits>
#include <type_traits>

namespace fourfold::kernels {
namespace {

constexpr int block_elements = codec_block_elements;

/// One block of int8 in a payload. The last one may have fewer codes.
struct Int8Block {
  float scale;
  std::int8_t codes[block_elements];
};

/// The operands of encode().
struct Source {
  const float* gradient;
  const float* error;  ///< or nullptr
  float error_scale;
  float* new_error;

  KOKKOS_FORCEINLINE_FUNCTION float at(std::int64_t i) const {
    return error == nullptr ? gradient[i] : gradient[i] + error_scale * error[i];
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void load_sum(std::int64_t first, float (&x)[n]) const {
    load<n>(gradient + first, x);
    if (error != nullptr) {
      float e[n];
      load<n>(error + first, e);
      for (int i = 0; i < n; ++i) {
        x[i] += error_scale * e[i];
      }
    }
  }
  bool at_packs() const { return kernels::at_packs<4>(gradient, error, new_error); }
};

struct EncodeBf16 {
  Source source;
  BFloat16* payload;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    const float unscale = 1.0F / source.error_scale;
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float x = source.at(i);
      store(payload[i], x);
      source.new_error[i] = (x - to_float(payload[i])) * unscale;
    }
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    const float unscale = 1.0F / source.error_scale;
    float x[n];
    float rounded[n];
    source.load_sum(first, x);
    for (int i = 0; i < n; ++i) {
      rounded[i] = float_from_bits(bfloat16_word(x[i]) & 0xFFFF0000U);
      x[i] = (x[i] - rounded[i]) * unscale;
    }
    save<n>(payload + first, rounded);
    save<n>(source.new_error + first, x);
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

using TeamPolicy = Kokkos::TeamPolicy<Kokkos::IndexType<std::int64_t>>;

/// One block on a host; on a device one for each thread of a team and its vector lanes, of which
/// one has neighbours that fit one access.
struct EncodeInt8 {
  Source source;
  Int8Block* payload;
  std::int64_t elements;
  bool aligned;

  static constexpr int lane_elements = 4;
  static constexpr int vector_lanes = 32;
  static constexpr std::int64_t team_threads = teams_on_host ? 1 : 8;
  static constexpr int pieces = block_elements / lane_elements;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t begin = index * codec_block_elements;
    const std::int64_t left = elements - begin;
    const std::int64_t count = left < block_elements ? left : block_elements;
    float x[block_elements];
    // As integers magnitudes have the order of the numbers, and NaN comes after infinity.
    std::uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < count; ++i) {
      x[i] = source.at(begin + i);
      const std::uint32_t magnitude = float_bits(x[i]) & 0x7FFFFFFFU;
      largest = magnitude > largest ? magnitude : largest;
    }
    Int8Block& block = payload[index];
    block.scale = block_scale(largest);
    write_codes(x, count, block.scale, block.codes, source.new_error + begin);
  }

  KOKKOS_FORCEINLINE_FUNCTION void write_codes(const float* x, std::int64_t count, float scale,
                                               std::int8_t* codes, float* new_error) const {
    const float inverse = scale > 0 ? 1.0F / scale : 0.0F;
    const float unscale = 1.0F / source.error_scale;
    // Adding 1.5 * 2^23 rounds to an integer in the low bits.
    constexpr float shift = 12582912.0F;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int32_t code = float_bits(x[i] * inverse + shift) - float_bits(shift);
      codes[i] = static_cast<std::int8_t>(code);
      new_error[i] = (x[i] - scale * static_cast<float>(code)) * unscale;
    }
  }

  KOKKOS_FUNCTION void operator()(const TeamPolicy::member_type& team) const {
    const std::int64_t index = team.league_rank() * team_threads + team.team_rank();
    const std::int64_t begin = index * codec_block_elements;
    if (begin >= elements) {
      return;
    }
    std::uint32_t largest = 0;
    Kokkos::parallel_reduce(
        Kokkos::ThreadVectorRange(team, pieces),
        [&](int piece, std::uint32_t& most) {
          for_piece(begin + piece * lane_elements, [&]<int n>(std::int64_t first, Count<n>) {
            float x[n];
            source.load_sum(first, x);
            for (const float each : x) {
              const std::uint32_t magnitude = float_bits(each) & 0x7FFFFFFFU;
              most = magnitude > most ? magnitude : most;
            }
          });
        },
        Kokkos::Max<std::uint32_t>(largest));
    const float scale = block_scale(largest);
    Int8Block& block = payload[index];
    Kokkos::single(Kokkos::PerThread(team), [&] { block.scale = scale; });
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, pieces), [&](int piece) {
      for_piece(begin + piece * lane_elements, [&]<int n>(std::int64_t first, Count<n>) {
        float x[n];
        float error[n];
        StoredElements<std::int8_t, n> codes;
        source.load_sum(first, x);
        write_codes(x, n, scale, codes.element, error);
        *reinterpret_cast<CodesOf<n>*>(block.codes + (first - begin)) =
            __builtin_bit_cast(CodesOf<n>, codes);
        save<n>(source.new_error + first, error);
      });
    });
  }

 private:
  template <int n>
  using CodesOf = std::conditional_t<n == lane_elements, std::uint32_t, std::uint8_t>;

  /// body(first, Count<n>) over one lane's elements from `first` on.
  template <class Body>
  KOKKOS_FORCEINLINE_FUNCTION void for_piece(std::int64_t first, const Body& body) const {
    if (aligned && first + lane_elements <= elements) {
      body(first, Count<lane_elements>{});
      return;
    }
    for (int i = 0; i < lane_elements && first + i < elements; ++i) {
      body(first + i, Count<1>{});
    }
  }
};

template <Write write>
KOKKOS_FORCEINLINE_FUNCTION void put(float& target, float value) {
  target = write == Write::accumulate ? target + value : value;
}

template <Write write, int n>
KOKKOS_FORCEINLINE_FUNCTION void put_run(float* target, float (&value)[n]) {
  if constexpr (write == Write::accumulate) {
    float sum[n];
    load<n>(target, sum);
    for (int i = 0; i < n; ++i) {
      value[i] = sum[i] + value[i];
    }
  }
  save<n>(target, value);
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
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float x[n];
    load<n>(payload + first, x);
    put_run<write, n>(gradient + first, x);
  }
};

template <Write write>
struct DecodeInt8 {
  const Int8Block* payload;
  float* gradient;
  std::int64_t elements;

  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t begin = index * codec_block_elements;
    const std::int64_t left = elements - begin;
    const std::int64_t count = left < block_elements ? left : block_elements;
    const float scale = payload[index].scale;
    const std::int8_t* const codes = payload[index].codes;
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      put<write>(gradient[begin + i], scale * codes[i]);
    }
  }

  /// On a device, for n elements of one block.
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    using Codes = std::conditional_t<n == 4, std::uint32_t, std::uint8_t>;
    const std::int64_t index = first / codec_block_elements;
    const Int8Block& block = payload[index];
    const auto codes = __builtin_bit_cast(
        StoredElements<std::int8_t, n>,
        *reinterpret_cast<const Codes*>(block.codes + (first - index * codec_block_elements)));
    float x[n];
    for (int i = 0; i < n; ++i) {
      x[i] = block.scale * codes.element[i];
    }
    put_run<write, n>(gradient + first, x);
  }
};

template <Write write>
void decode_as(GradientCodec codec, ConstTensorView payload, TensorView gradient,
               device::StreamRef stream) {
  const std::int64_t elements = gradient.elements();
  if (codec == GradientCodec::bf16) {
    const DecodeBf16<write> body{static_cast<const BFloat16*>(payload.data()),
                                 gradient.as<float>()};
    for_each_pack<8>("decode_bf16", elements,
                     at_packs<8>(body.payload) && at_packs<8>(body.gradient), MemorySpace::device,
                     stream, body);
    return;
  }
  const DecodeInt8<write> body{static_cast<const Int8Block*>(payload.data()), gradient.as<float>(),
                               elements};
  if constexpr (is_for_device) {
    for_each_pack<4>("decode_int8", elements, at_packs<4>(body.gradient), stream, body);
  } else {
    for_each("decode_int8", (elements + block_elements - 1) / block_elements, stream, body);
  }
}

void encode_int8_blocks(const EncodeInt8& body, std::int64_t blocks, device::StreamRef stream) {
  constexpr int threads = EncodeInt8::team_threads;
  const auto teams = static_cast<int>((blocks + threads - 1) / threads);
  if (teams > 0) {
    enqueue(stream, [=] {
      launch("encode_int8",
             TeamPolicy(execution_space(stream), teams, threads, EncodeInt8::vector_lanes), body);
    });
  }
}

}  // namespace

std::int64_t payload_bytes(GradientCodec codec, std::int64_t elements) noexcept {
  const std::int64_t blocks = (elements + codec_block_elements - 1) / codec_block_elements;
  const std::int64_t bytes =
      codec == GradientCodec::bf16 ? 2 * elements : elements + blocks * sizeof(float);
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
    const EncodeBf16 body{source, static_cast<BFloat16*>(payload.data())};
    for_each_pack<8>("encode_bf16", elements, source.at_packs() && at_packs<8>(body.payload),
                     MemorySpace::device, stream, body);
    return;
  }
  const EncodeInt8 body{source, static_cast<Int8Block*>(payload.data()), elements,
                        source.at_packs()};
  const std::int64_t blocks = (elements + block_elements - 1) / block_elements;
  if constexpr (is_for_device) {
    encode_int8_blocks(body, blocks, stream);
  } else {
    for_each("encode_int8", blocks, stream, body);
  }
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
