// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/for_each_pack.hpp"
#include "vectors/lanes.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace fourfold::kernels {
namespace {

template <class Source, class Target>
struct Cast {
  const Source* source;
  Target* target;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    std::int64_t i = begin;
    for (; i + lanes <= end; i += lanes) {
      prefetch_chunk(source + begin + element_ahead(i - begin, end - begin, 0));
      if constexpr (std::is_same_v<Source, BFloat16> || std::is_same_v<Target, BFloat16>) {
#pragma omp simd
        for (int lane = 0; lane < lanes; ++lane) {
          store(target[i + lane], to_float(source[i + lane]));
        }
      } else {
        Lanes x;
        widen(source + i, x);
        narrow(target + i, x);
      }
    }
    for (; i < end; ++i) {
      store(target[i], to_float(source[i]));
    }
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float x[n];
    load<n>(source + first, x);
    save<n>(target + first, x);
  }
};

struct AddScaled {
  const float* x;
  float factor;
  const float* y;
  float* out;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = x[i] + factor * y[i];
    }
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float sum[n];
    float addend[n];
    load<n>(x + first, sum);
    load<n>(y + first, addend);
    for (int i = 0; i < n; ++i) {
      sum[i] += factor * addend[i];
    }
    save<n>(out + first, sum);
  }
};

}  // namespace

void cast(ConstTensorView source, TensorView target, device::StreamRef stream, MemorySpace place) {
  FOURFOLD_EXPECT(source.elements() == target.elements());
  if (source.dtype() == target.dtype() && place == MemorySpace::device) {
    device::copy(target.data(), source.data(), source.bytes(), stream);
    return;
  }
  if (source.dtype() == target.dtype()) {
    std::memcpy(target.data(), source.data(), source.bytes());
    return;
  }
  with_storage(source.dtype(), [&]<class Source>(Source) {
    with_storage(target.dtype(), [&]<class Target>(Target) {
      if constexpr (!std::is_same_v<Source, Target>) {
        constexpr int n = std::max(pack_elements<Source>, pack_elements<Target>);
        const Cast<Source, Target> body{source.as<Source>(), target.as<Target>()};
        for_each_pack<n>("cast", source.elements(),
                         at_packs<n>(body.source) && at_packs<n>(body.target), place, stream, body);
      }
    });
  });
}

void add_scaled(ConstTensorView x, float factor, ConstTensorView y, TensorView out,
                device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == out.elements() && y.elements() == out.elements());
  constexpr int n = pack_elements<float>;
  const AddScaled body{x.as<float>(), factor, y.as<float>(), out.as<float>()};
  for_each_pack<n>("add_scaled", out.elements(), at_packs<n>(body.x, body.y, body.out),
                   MemorySpace::device, stream, body);
}

}  // namespace fourfold::kernels
