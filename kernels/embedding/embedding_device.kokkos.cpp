// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Embeddings on a device. For the gradient the tokens of each row of a table are brought together
/// first, in the order of t, in time that grows with the tokens rather than with tokens times rows.
#include "embedding_backend.hpp"
#include "runtime/scratch.hpp"
#include "vectors/for_each_pack.hpp"

namespace fourfold::kernels {
namespace {

template <class T>
struct Embedding {
  EmbeddingOperands<T> with;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t d,
                                              Count<n> /*count*/) const {
    const std::int64_t row = with.token_T[t] - with.first_row;
    const bool here = row >= 0 && row < with.rows;
    float y[n] = {};
    if (here) {
      load<n>(with.weight_VD + row * with.features + d, y);
    }
    if (with.position_weight_PD != nullptr) {
      float position[n];
      load<n>(with.position_weight_PD + with.position_T[t] * with.features + d, position);
      for (int i = 0; i < n; ++i) {
        y[i] = here ? y[i] + position[i] : position[i];
      }
    }
    save<n>(with.y_TD + t * with.features + d, y);
  }
};

template <class T>
struct EmbeddingAdd {
  EmbeddingOperands<T> with;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t d,
                                              Count<n> /*count*/) const {
    const std::int64_t row = with.token_T[t] - with.first_row;
    if (row < 0 || row >= with.rows) {
      return;
    }
    float token[n];
    float y[n];
    load<n>(with.weight_VD + row * with.features + d, token);
    load<n>(with.y_TD + t * with.features + d, y);
    for (int i = 0; i < n; ++i) {
      y[i] += token[i];
    }
    save<n>(with.y_TD + t * with.features + d, y);
  }
};

/// The tokens of each row, in memory of one call. All numbers but `place` and `begin` are those of
/// any other run; what is computed from those two is as well.
struct Buckets {
  const std::int32_t* index_T;
  std::int64_t first_row;
  std::int64_t rows;
  std::int32_t* used;    ///< places given to rows
  std::int32_t* size;    ///< [row]
  std::int32_t* begin;   ///< [row]: its first place
  std::int32_t* filled;  ///< [row]
  std::int32_t* place;   ///< [token]: tokens, in buckets, in any order
  std::int32_t* sorted;  ///< [token]: in buckets, in the order of t

  Buckets(const std::int32_t* index, std::int64_t tokens, std::int64_t first, std::int64_t count,
          device::StreamRef stream)
      : index_T(index),
        first_row(first),
        rows(count),
        used(scratch<std::int32_t>(1 + 3 * count + 2 * tokens, stream)),
        size(used + 1),
        begin(size + rows),
        filled(begin + rows),
        place(filled + rows),
        sorted(place + tokens) {}

  /// Of a token; negative when it is not at hand.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_of(std::int64_t t) const {
    const std::int64_t row = index_T[t] - first_row;
    return row < rows ? row : -1;
  }
};

struct ClearBuckets {
  Buckets buckets;
  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    buckets.size[row] = 0;
    buckets.filled[row] = 0;
    if (row == 0) {
      *buckets.used = 0;
    }
  }
};

struct CountTokens {
  Buckets buckets;
  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const std::int64_t row = buckets.row_of(t);
    if (row >= 0) {
      Kokkos::atomic_fetch_add(buckets.size + row, 1);
    }
  }
};

struct PlaceBuckets {
  Buckets buckets;
  KOKKOS_FUNCTION void operator()(std::int64_t row) const {
    const std::int32_t size = buckets.size[row];
    if (size > 0) {
      buckets.begin[row] = Kokkos::atomic_fetch_add(buckets.used, size);
    }
  }
};

struct FillBuckets {
  Buckets buckets;
  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const std::int64_t row = buckets.row_of(t);
    if (row >= 0) {
      buckets.place[buckets.begin[row] + Kokkos::atomic_fetch_add(buckets.filled + row, 1)] =
          static_cast<std::int32_t>(t);
    }
  }
};

/// The rank of a token is the number of those before it in its bucket.
struct SortBuckets {
  Buckets buckets;
  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const std::int64_t row = buckets.row_of(t);
    if (row < 0) {
      return;
    }
    const std::int32_t begin = buckets.begin[row];
    const std::int32_t end = begin + buckets.size[row];
    std::int32_t rank = 0;
    for (std::int32_t i = begin; i < end; ++i) {
      rank += buckets.place[i] < t ? 1 : 0;
    }
    buckets.sorted[begin + rank] = static_cast<std::int32_t>(t);
  }
};

/// Adds some features of all tokens of a row, in the order of t.
template <class T>
struct SumBuckets {
  Buckets buckets;
  const T* dy_TD;
  float* dweight_VD;
  std::int64_t features;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t row, std::int64_t d,
                                              Count<n> /*count*/) const {
    const std::int32_t size = buckets.size[row];
    if (size == 0) {
      return;
    }
    const std::int32_t* const token = buckets.sorted + buckets.begin[row];
    float sum[n];
    load<n>(dweight_VD + row * features + d, sum);
    std::int32_t i = 0;
    for (; i + at_once <= size; i += at_once) {  // so many reads are on their way at a time
      float dy[at_once][n];
      for (int k = 0; k < at_once; ++k) {
        load<n>(dy_TD + token[i + k] * features + d, dy[k]);
      }
      for (int k = 0; k < at_once; ++k) {
        add<n>(sum, dy[k]);
      }
    }
    for (; i < size; ++i) {
      float dy[n];
      load<n>(dy_TD + token[i] * features + d, dy);
      add<n>(sum, dy);
    }
    save<n>(dweight_VD + row * features + d, sum);
  }

 private:
  static constexpr int at_once = 8;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION static void add(float (&sum)[n], const float (&x)[n]) {
    for (int i = 0; i < n; ++i) {
      sum[i] += x[i];
    }
  }
};

/// Tokens of the rows [first_row, first_row + rows) of a table.
Buckets fill_buckets(const std::int32_t* index_T, std::int64_t tokens, std::int64_t first_row,
                     std::int64_t rows, device::StreamRef stream) {
  const Buckets buckets(index_T, tokens, first_row, rows, stream);
  for_each("clear_buckets", rows, stream, ClearBuckets{buckets});
  for_each("count_tokens", tokens, stream, CountTokens{buckets});
  for_each("place_buckets", rows, stream, PlaceBuckets{buckets});
  for_each("fill_buckets", tokens, stream, FillBuckets{buckets});
  for_each("sort_buckets", tokens, stream, SortBuckets{buckets});
  return buckets;
}

template <class T>
void add_to_rows(const Buckets& buckets, const T* dy_TD, float* dweight_VD, std::int64_t features,
                 device::StreamRef stream) {
  constexpr int n = 4;  // in twice as many threads as with packs of 16 bytes
  for_each_pack_of_rows<n>("embedding_bwd", buckets.rows, features,
                           at_packs<n>(dy_TD) && at_packs<n>(dweight_VD), stream,
                           SumBuckets<T>{buckets, dy_TD, dweight_VD, features});
}

}  // namespace

template <class T>
void embed_tokens(const EmbeddingOperands<T>& with, device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  for_each_pack_of_rows<n>("embedding", with.tokens, with.features,
                           at_packs<n>(with.weight_VD, with.position_weight_PD, with.y_TD), stream,
                           Embedding<T>{with});
}
template void embed_tokens(const EmbeddingOperands<float>&, device::StreamRef);
template void embed_tokens(const EmbeddingOperands<BFloat16>&, device::StreamRef);
template void embed_tokens(const EmbeddingOperands<Float16>&, device::StreamRef);

template <class T>
void add_embeddings(const EmbeddingOperands<T>& with, device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  for_each_pack_of_rows<n>("embedding_add", with.tokens, with.features,
                           at_packs<n>(with.weight_VD, with.y_TD), stream, EmbeddingAdd<T>{with});
}
template void add_embeddings(const EmbeddingOperands<float>&, device::StreamRef);
template void add_embeddings(const EmbeddingOperands<BFloat16>&, device::StreamRef);
template void add_embeddings(const EmbeddingOperands<Float16>&, device::StreamRef);

template <class T>
void differentiate_embedding(const EmbeddingGradients<T>& with, device::StreamRef stream) {
  add_to_rows(fill_buckets(with.token_T, with.tokens, with.first_row, with.rows, stream),
              with.dy_TD, with.dweight_VD, with.features, stream);
  if (with.dposition_weight_PD != nullptr) {
    add_to_rows(fill_buckets(with.position_T, with.tokens, 0, with.positions, stream), with.dy_TD,
                with.dposition_weight_PD, with.features, stream);
  }
}
template void differentiate_embedding(const EmbeddingGradients<float>&, device::StreamRef);
template void differentiate_embedding(const EmbeddingGradients<BFloat16>&, device::StreamRef);
template void differentiate_embedding(const EmbeddingGradients<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
