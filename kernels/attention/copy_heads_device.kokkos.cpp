// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_backend.hpp"
#include "vectors/for_each_pack.hpp"

#include <algorithm>

namespace fourfold::kernels {
namespace {

template <class Source, class Target>
struct CopyRow {
  const Source* from;
  std::int64_t from_batch;
  std::int64_t from_token;
  Target* to;
  std::int64_t to_batch;
  std::int64_t to_token;
  Divisor tokens;

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

void copy_head_rows(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream) {
  with_storage(from.dtype, [&]<class Source>(Source) {
    with_storage(to.dtype, [&]<class Target>(Target) {
      constexpr int n = std::max(pack_elements<Source>, pack_elements<Target>);
      const CopyRow<Source, Target> body{
          from.as<const Source>(), from.batch_stride, from.token_stride,   to.as<Target>(),
          to.batch_stride,         to.token_stride,   Divisor(rows.tokens)};
      const bool aligned = from.batch_stride % n == 0 && from.token_stride % n == 0 &&
                           to.batch_stride % n == 0 && to.token_stride % n == 0 &&
                           at_packs<n>(body.from) && at_packs<n>(body.to);
      for_each_pack_of_rows<n>("copy_heads", rows.batch * rows.tokens, rows.features, aligned,
                               stream, body);
    });
  });
}

}  // namespace fourfold::kernels
