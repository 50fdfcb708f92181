// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/storage.hpp"

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace fourfold::kernels {
namespace {

template <class Source, class Target>
struct CopyRow {
  ConstHeads from;
  Heads to;
  std::int64_t tokens;
  std::int64_t features;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const std::int64_t b = row / tokens;
    const std::int64_t t = row % tokens;
    const Source* const source =
        static_cast<const Source*>(from.data) + b * from.batch_stride + t * from.token_stride;
    Target* const target =
        static_cast<Target*>(to.data) + b * to.batch_stride + t * to.token_stride;
#pragma omp simd
    for (std::int64_t f = 0; f < features; ++f) {
      if constexpr (std::is_same_v<Source, Target>) {
        target[f] = source[f];
      } else {
        store(target[f], to_float(source[f]));
      }
    }
  }
};

}  // namespace

void copy_head_rows(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream) {
  with_storage(from.dtype, [&]<class Source>(Source) {
    with_storage(to.dtype, [&]<class Target>(Target) {
      for_each("copy_heads", rows.batch * rows.tokens, stream,
               CopyRow<Source, Target>{from, to, rows.tokens, rows.features});
    });
  });
}

}  // namespace fourfold::kernels
