// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/for_each_pack.hpp"

#include <fourfold/kernels/attention.hpp>

#include <algorithm>
#include <type_traits>

namespace fourfold::kernels {
namespace {

/// A row on a host, n of its features on a device.
template <class Source, class Target>
struct CopyRow {
  const Source* from;
  std::int64_t from_batch;
  std::int64_t from_token;
  Target* to;
  std::int64_t to_batch;
  std::int64_t to_token;
  Divisor tokens;
  std::int64_t features;

  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const std::int64_t b = tokens.quotient(row);
    const std::int64_t t = row - b * tokens.value();
    const Source* const source = from + b * from_batch + t * from_token;
    Target* const target = to + b * to_batch + t * to_token;
#pragma omp simd
    for (std::int64_t f = 0; f < features; ++f) {
      if constexpr (std::is_same_v<Source, Target>) {
        target[f] = source[f];
      } else {
        store(target[f], to_float(source[f]));
      }
    }
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t f,
                                              Count<n> /*count*/) const {
    const std::int64_t b = tokens.quotient(row);
    const std::int64_t t = row - b * tokens.value();
    float x[n];
    load<n>(from + b * from_batch + t * from_token + f, x);
    save<n>(to + b * to_batch + t * to_token + f, x);
  }
};

}  // namespace

void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream) {
  if (rows.batch * rows.tokens == 0) {
    return;
  }
  with_storage(from.dtype, [&]<class Source>(Source) {
    with_storage(to.dtype, [&]<class Target>(Target) {
      constexpr int n = std::max(pack_elements<Source>, pack_elements<Target>);
      const CopyRow<Source, Target> body{.from = from.as<const Source>(),
                                         .from_batch = from.batch_stride,
                                         .from_token = from.token_stride,
                                         .to = to.as<Target>(),
                                         .to_batch = to.batch_stride,
                                         .to_token = to.token_stride,
                                         .tokens = Divisor(rows.tokens),
                                         .features = rows.features};
      const bool aligned = from.batch_stride % n == 0 && from.token_stride % n == 0 &&
                           to.batch_stride % n == 0 && to.token_stride % n == 0 &&
                           at_packs<n>(body.from) && at_packs<n>(body.to);
      for_each_pack_of_rows<n>("copy_heads", rows.batch * rows.tokens, rows.features, aligned,
                               stream, body);
    });
  });
}

}  // namespace fourfold::kernels
