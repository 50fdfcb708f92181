// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"
#include "launch.hpp"
#include "storage.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>

#include <Kokkos_Core.hpp>

#include <cmath>
#include <cstring>
#include <limits>
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
};

template <class T>
struct Scale {
  T* x;
  float factor;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    map(
        NothingAhead{}, end - begin, [this](float value) { return value * factor; }, x + begin,
        x + begin);
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
};

}  // namespace

void cast(ConstTensorView source, TensorView target, device::StreamRef stream, Place place) {
  FOURFOLD_EXPECT(source.elements() == target.elements());
  if (source.dtype() == target.dtype() && place == Place::device) {
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
        for_each_block("cast", source.elements(), place, stream,
                       Cast<Source, Target>{source.as<Source>(), target.as<Target>()});
      }
    });
  });
}

void scale(TensorView x, float factor, device::StreamRef stream) {
  if (std::isnan(factor)) {  // the one NaN that rounded_result expects
    factor = std::numeric_limits<float>::quiet_NaN();
  }
  with_storage(x.dtype(), [&]<class T>(T) {
    for_each_block("scale", x.elements(), stream, Scale<T>{x.as<T>(), factor});
  });
}

void add_scaled(ConstTensorView x, float factor, ConstTensorView y, TensorView out,
                device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == out.elements() && y.elements() == out.elements());
  for_each_block("add_scaled", out.elements(), stream,
                 AddScaled{x.as<float>(), factor, y.as<float>(), out.as<float>()});
}

}  // namespace fourfold::kernels
