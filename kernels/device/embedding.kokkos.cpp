// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Embeddings on a device. For the gradient the tokens of each row of a table are brought together
/// first, in the order of t, in time that grows with the tokens rather than with tokens times rows.
#include "device/for_each_pack.hpp"
#include "scratch.hpp"

#include <fourfold/kernels/embedding.hpp>

#include <cstddef>

namespace fourfold::kernels {
namespace {

template <class T>
struct Embedding {
  const std::int32_t* token_T;
  const T* weight_VD;
  std::int64_t first_row;
  std::int64_t rows;
  const T* position_weight_PD;  ///< or nullptr
  const std::int32_t* position_T;
  T* y_TD;
  std::int64_t features;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t d,
                                              Count<n> /*count*/) const {
    const std::int64_t row = token_T[t] - first_row;
    const bool here = row >= 0 && row < rows;
    float y[n] = {};
    if (here) {
      load<n>(weight_VD + row * features + d, y);
    }
    if (position_weight_PD != nullptr) {
      float position[n];
      load<n>(position_weight_PD + position_T[t] * features + d, position);
      for (int i = 0; i < n; ++i) {
        y[i] = here ? y[i] + position[i] : position[i];
      }
    }
    save<n>(y_TD + t * features + d, y);
  }
};

template <class T>
struct EmbeddingAdd {
  const std::int32_t* token_T;
  const T* weight_VD;
  std::int64_t first_row;
  std::int64_t rows;
  T* y_TD;
  std::int64_t features;

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t d,
                                              Count<n> /*count*/) const {
    const std::int64_t row = token_T[t] - first_row;
    if (row < 0 || row >= rows) {
      return;
    }
    float token[n];
    float y[n];
    load<n>(weight_VD + row * features + d, token);
    load<n>(y_TD + t * features + d, y);
    for (int i = 0; i < n; ++i) {
      y[i] += token[i];
    }
    save<n>(y_TD + t * features + d, y);
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

  static std::size_t bytes(std::int64_t rows, std::int64_t tokens) {
    return static_cast<std::size_t>(1 + 3 * rows + 2 * tokens) * sizeof(std::int32_t);
  }
  Buckets(ConstTensorView index, std::int64_t first, std::int64_t count, std::int32_t* memory)
      : index_T(index.as<std::int32_t>()),
        first_row(first),
        rows(count),
        used(memory),
        size(used + 1),
        begin(size + rows),
        filled(begin + rows),
        place(filled + rows),
        sorted(place + index.elements()) {}

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

void add_to_rows(ConstTensorView index_T, ConstTensorView dy_TD, std::int64_t first_row,
                 TensorView dweight_VD, device::StreamRef stream) {
  const std::int64_t rows = dweight_VD.dim(0);
  const std::int64_t features = dweight_VD.dim(1);
  const std::int64_t tokens = index_T.elements();
  const Buckets buckets(index_T, first_row, rows,
                        static_cast<std::int32_t*>(scratch(Buckets::bytes(rows, tokens), stream)));
  for_each("clear_buckets", rows, stream, ClearBuckets{buckets});
  for_each("count_tokens", tokens, stream, CountTokens{buckets});
  for_each("place_buckets", rows, stream, PlaceBuckets{buckets});
  for_each("fill_buckets", tokens, stream, FillBuckets{buckets});
  for_each("sort_buckets", tokens, stream, SortBuckets{buckets});
  with_storage(dy_TD.dtype(), [&]<class T>(T) {
    constexpr int n = 4;  // in twice as many threads as with packs of 16 bytes
    const SumBuckets<T> body{buckets, dy_TD.as<T>(), dweight_VD.as<float>(), features};
    for_each_pack_of_rows<n>("embedding_bwd", rows, features,
                             at_packs<n>(body.dy_TD) && at_packs<n>(body.dweight_VD), stream, body);
  });
}

}  // namespace

void embedding(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
               ConstTensorView position_weight_PD, ConstTensorView position_T, TensorView y_TD,
               device::StreamRef stream) {
  const std::int64_t features = weight_VD.dim(1);
  FOURFOLD_EXPECT(y_TD.elements() == token_T.elements() * features);
  FOURFOLD_EXPECT(!position_weight_PD || (position_weight_PD.dim(1) == features &&
                                          position_T.elements() == token_T.elements()));
  with_storage(y_TD.dtype(), [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const bool positions = static_cast<bool>(position_weight_PD);
    const Embedding<T> body{token_T.as<std::int32_t>(),
                            weight_VD.as<T>(),
                            first_row,
                            weight_VD.dim(0),
                            positions ? position_weight_PD.as<T>() : nullptr,
                            positions ? position_T.as<std::int32_t>() : nullptr,
                            y_TD.as<T>(),
                            features};
    for_each_pack_of_rows<n>("embedding", token_T.elements(), features,
                             at_packs<n>(body.weight_VD, body.position_weight_PD, body.y_TD),
                             stream, body);
  });
}

void embedding_add(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
                   TensorView y_TD, device::StreamRef stream) {
  const std::int64_t features = weight_VD.dim(1);
  FOURFOLD_EXPECT(y_TD.elements() == token_T.elements() * features);
  with_storage(y_TD.dtype(), [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const EmbeddingAdd<T> body{token_T.as<std::int32_t>(), weight_VD.as<T>(), first_row,
                               weight_VD.dim(0),           y_TD.as<T>(),      features};
    for_each_pack_of_rows<n>("embedding_add", token_T.elements(), features,
                             at_packs<n>(body.weight_VD, body.y_TD), stream, body);
  });
}

void embedding_backward(ConstTensorView token_T, ConstTensorView dy_TD, std::int64_t first_row,
                        TensorView dweight_VD, ConstTensorView position_T,
                        TensorView dposition_weight_PD, device::StreamRef stream) {
  const std::int64_t features = dweight_VD.dim(1);
  FOURFOLD_EXPECT(dy_TD.elements() == token_T.elements() * features);
  FOURFOLD_EXPECT(!dposition_weight_PD || (dposition_weight_PD.dim(1) == features &&
                                           position_T.elements() == token_T.elements()));
  add_to_rows(token_T, dy_TD, first_row, dweight_VD, stream);
  if (dposition_weight_PD) {
    add_to_rows(position_T, dy_TD, 0, dposition_weight_PD, stream);
  }
}

}  // namespace fourfold::kernels
