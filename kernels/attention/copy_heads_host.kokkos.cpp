// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/storage.hpp"

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace fourfold::kernels {

void copy_head_rows(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream) {
  with_storage(from.dtype, [&]<class Source>(Source) {
    with_storage(to.dtype, [&]<class Target>(Target) {
      for_each("copy_heads", rows.batch * rows.tokens, stream, [=](std::int64_t row) {
        const std::int64_t b = row / rows.tokens;
        const std::int64_t t = row % rows.tokens;
        const Source* const source =
            from.as<const Source>() + b * from.batch_stride + t * from.token_stride;
        Target* const target = to.as<Target>() + b * to.batch_stride + t * to.token_stride;
#pragma omp simd
        for (std::int64_t f = 0; f < rows.features; ++f) {
          if constexpr (std::is_same_v<Source, Target>) {
            target[f] = source[f];
          } else {
            store(target[f], to_float(source[f]));
          }
        }
      });
    });
  });
}

}  // namespace fourfold::kernels
