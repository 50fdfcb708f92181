// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_backend.hpp"
#include "runtime/scratch.hpp"
#include "vectors/for_each_pack.hpp"
#include "vectors/vector_math.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/attention.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace fourfold::kernels {
namespace {

/// to += from
template <class T>
struct AddRow {
  const T* from;  // dense
  float* to;
  std::int64_t features;
  std::int64_t to_batch;
  std::int64_t to_token;
  Divisor tokens;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t f,
                                              Count<n> /*count*/) const {
    const std::int64_t b = tokens.quotient(row);
    const std::int64_t t = row - b * tokens.value();
    float* const target = to + b * to_batch + t * to_token + f;
    float x[n];
    float sum[n];
    load<n>(from + row * features + f, x);
    load<n>(target, sum);
    for (int i = 0; i < n; ++i) {
      sum[i] += x[i];
    }
    save<n>(target, sum);
  }
};

/// What two parts of a softmax weigh whose denominators have these logarithms.
struct Weights {
  float maximum;
  float first;
  float second;
  KOKKOS_FORCEINLINE_FUNCTION Weights(float first_lse, float second_lse)
      : maximum(first_lse > second_lse ? first_lse : second_lse),
        first(vector_exp_minus(maximum - first_lse)),
        second(vector_exp_minus(maximum - second_lse)) {}
};

/// out = that over both parts. A pack of n features lies within a head.
template <class T>
struct MergeRow {
  const T* part;  // dense
  float* out;
  const float* lse_BNT;
  const float* part_lse_BNT;
  std::int64_t heads;
  std::int64_t out_batch;
  std::int64_t out_token;
  Divisor tokens;
  Divisor head_dim;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t f,
                                              Count<n> /*count*/) const {
    const std::int64_t b = tokens.quotient(row);
    const std::int64_t t = row - b * tokens.value();
    const std::int64_t query = (b * heads + head_dim.quotient(f)) * tokens.value() + t;
    const Weights weights(lse_BNT[query], part_lse_BNT[query]);
    const float scale = 1.0F / (weights.first + weights.second);
    float* const target = out + b * out_batch + t * out_token + f;
    float x[n];
    float y[n];
    load<n>(target, x);
    load<n>(part + row * heads * head_dim.value() + f, y);
    for (int i = 0; i < n; ++i) {
      x[i] = scale * (weights.first * x[i] + weights.second * y[i]);
    }
    save<n>(target, x);
  }
};

/// lse = that over both parts.
struct MergeLse {
  float* lse_BNT;
  const float* part_lse_BNT;
  KOKKOS_FUNCTION void operator()(std::int64_t query) const {
    const Weights weights(lse_BNT[query], part_lse_BNT[query]);
    lse_BNT[query] = weights.maximum + std::log(weights.first + weights.second);
  }
};

/// A result as it is wanted, and as the library makes it: there at once, or in scratch memory.
struct Result {
  Heads wanted;
  Write write;
  HeadRows rows;
  ConstHeads made;

  Result(const Heads& heads, Write how, DType made_dtype, const HeadRows& size)
      : wanted(heads), write(how), rows(size), made(read_only(heads)) {
    if (wanted.dtype != made_dtype) {
      made = {nullptr, made_dtype, rows.tokens * rows.features, rows.features};
    }
  }
  bool is_staged() const { return wanted.dtype != made.dtype; }
  std::int64_t bytes() const {
    return is_staged() ? staged_bytes(rows.batch * made.batch_stride) : 0;
  }
  bool has_packs(int n) const {
    return wanted.batch_stride % n == 0 && wanted.token_stride % n == 0;
  }
};

/// Gives what is staged its memory. @return so many bytes after it
std::byte* place(std::span<Result> results, std::size_t bytes_after, device::StreamRef stream) {
  std::size_t bytes = bytes_after;
  for (const Result& result : results) {
    bytes += result.bytes();
  }
  auto* next = static_cast<std::byte*>(staging(bytes, stream));
  for (Result& result : results) {
    if (result.is_staged()) {
      result.made.data = next;
      next += result.bytes();
    }
  }
  return next;
}

void add(const Result& result, device::StreamRef stream) {
  with_storage(result.made.dtype, [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const AddRow<T> body{result.made.as<const T>(),  result.wanted.as<float>(),
                         result.rows.features,       result.wanted.batch_stride,
                         result.wanted.token_stride, Divisor(result.rows.tokens)};
    const bool aligned = result.has_packs(n) && at_packs<n>(body.from) && at_packs<n>(body.to);
    for_each_pack_of_rows<n>("attention_add", result.rows.batch * result.rows.tokens,
                             result.rows.features, aligned, stream, body);
  });
}

void finish(const Result& result, device::StreamRef stream) {
  if (result.is_staged() && result.write == Write::accumulate) {
    add(result, stream);
  } else if (result.is_staged()) {
    copy_heads(result.rows, result.made, result.wanted, stream);
  }
}

void merge(const AttentionShape& shape, const Result& result, float* lse_BNT,
           const float* part_lse_BNT, device::StreamRef stream) {
  with_storage(result.made.dtype, [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const MergeRow<T> body{result.made.as<const T>(),
                           result.wanted.as<float>(),
                           lse_BNT,
                           part_lse_BNT,
                           shape.heads,
                           result.wanted.batch_stride,
                           result.wanted.token_stride,
                           Divisor(shape.query_tokens),
                           Divisor(shape.head_dim)};
    const bool aligned = shape.head_dim % n == 0 && result.has_packs(n) && at_packs<n>(body.out);
    for_each_pack_of_rows<n>("attention_merge", shape.batch * shape.query_tokens,
                             result.rows.features, aligned, stream, body);
  });
  for_each("attention_merge_lse", shape.batch * shape.heads * shape.query_tokens, stream,
           MergeLse{lse_BNT, part_lse_BNT});
}

HeadRows query_rows(const AttentionShape& shape) {
  return {shape.batch, shape.query_tokens, shape.heads * shape.head_dim};
}
HeadRows key_rows(const AttentionShape& shape) {
  return {shape.batch, shape.key_tokens, shape.kv_heads * shape.head_dim};
}

}  // namespace

bool vendor_attends(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                    Heads out, float* lse_BNT, bool merges, device::StreamRef stream) {
  std::array results{Result(out, Write::replace, q.dtype, query_rows(shape))};
  Result& result = results.front();
  AttentionCall call{shape, false, q, k, v, result.made, lse_BNT};
  float* part_lse_BNT = nullptr;
  if (result.is_staged()) {
    if (!vendor_would_serve(call)) {
      return false;
    }
    const std::int64_t queries = shape.batch * shape.heads * shape.query_tokens;
    std::byte* const after = place(results, merges ? queries * sizeof(float) : 0, stream);
    part_lse_BNT = reinterpret_cast<float*>(after);
    call.out = result.made;
    call.lse_BNT = merges ? part_lse_BNT : lse_BNT;
  }
  // f32 that is merged into f32 is not staged, and nothing that the library serves.
  if ((merges && !result.is_staged()) || !vendor_attention(call, stream)) {
    return false;
  }
  if (merges) {
    merge(shape, result, lse_BNT, part_lse_BNT, stream);
  } else {
    finish(result, stream);
  }
  return true;
}

bool vendor_differentiates(const AttentionGradients& with, device::StreamRef stream) {
  const AttentionShape& shape = with.shape;
  std::array results{Result(with.dq, with.write_dq, with.q.dtype, query_rows(shape)),
                     Result(with.dk, with.write_dkv, with.q.dtype, key_rows(shape)),
                     Result(with.dv, with.write_dkv, with.q.dtype, key_rows(shape))};
  const auto call = [&] {
    return AttentionCall{shape,          true,         with.q,    with.k,          with.v,
                         with.out,       with.lse_BNT, with.dout, results[0].made, results[1].made,
                         results[2].made};
  };
  if (std::ranges::any_of(results, &Result::is_staged)) {
    if (!vendor_would_serve(call())) {
      return false;
    }
    place(results, 0, stream);
  }
  if (!vendor_attention(call(), stream)) {
    return false;
  }
  for (const Result& result : results) {
    finish(result, stream);
  }
  return true;
}

}  // namespace fourfold::kernels
