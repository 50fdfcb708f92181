// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Embeddings. For the gradient on a device the tokens of each row of a table are brought together
/// first, in the order of t, in time that grows with the tokens rather than with tokens times rows.
#include "runtime/scratch.hpp"
#include "vectors/for_each_pack.hpp"

#include <fourfold/kernels/embedding.hpp>

#include <algorithm>

namespace fourfold::kernels {
namespace {

/// A row of y on a host, n of its features on a device.
template <class T>
struct Embedding {
  const std::int32_t* token_T;
  const T* weight_VD;
  std::int64_t first_row;
  std::int64_t rows;            ///< at hand
  const T* position_weight_PD;  ///< or nullptr
  const std::int32_t* position_T;
  T* y_TD;
  std::int64_t features;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const std::int64_t row = token_T[t] - first_row;
    const T* token = row >= 0 && row < rows ? weight_VD + row * features : nullptr;
    const T* position =
        position_weight_PD == nullptr ? nullptr : position_weight_PD + position_T[t] * features;
    T* y = y_TD + t * features;
    if (token != nullptr && position != nullptr) {
#pragma omp simd
      for (std::int64_t d = 0; d < features; ++d) {
        store(y[d], to_float(token[d]) + to_float(position[d]));
      }
      return;
    }
    const T* only = token != nullptr ? token : position;
    if (only != nullptr) {
      std::copy_n(only, features, y);
    } else {
      std::fill_n(y, features, T{});
    }
  }

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

/// The same, added to what y is.
template <class T>
struct EmbeddingAdd {
  const std::int32_t* token_T;
  const T* weight_VD;
  std::int64_t first_row;
  std::int64_t rows;
  T* y_TD;
  std::int64_t features;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const std::int64_t row = token_T[t] - first_row;
    if (row < 0 || row >= rows) {
      return;
    }
    const T* token = weight_VD + row * features;
    T* y = y_TD + t * features;
#pragma omp simd
    for (std::int64_t d = 0; d < features; ++d) {
      store(y[d], to_float(y[d]) + to_float(token[d]));
    }
  }

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

/// dweight += the rows of dy whose index is at hand, in the order of t, on a host. Slices of
/// features share nothing, so any number of threads gives the same bits.
template <class T>
void add_slices(const std::int32_t* index_T, std::int64_t tokens, std::int64_t first_row,
                std::int64_t rows, const T* dy_TD, float* dweight_VD, std::int64_t features,
                device::StreamRef stream) {
  constexpr std::int64_t slice_width = 128;
  const std::int64_t slices = (features + slice_width - 1) / slice_width;
  for_each("embedding_bwd", slices, stream, [=](std::int64_t slice) {
    const std::int64_t begin = slice * slice_width;
    const std::int64_t width = std::min(slice_width, features - begin);
    for (std::int64_t t = 0; t < tokens; ++t) {
      const std::int64_t row = index_T[t] - first_row;
      if (row < 0 || row >= rows) {
        continue;
      }
      const T* dy = dy_TD + t * features + begin;
      float* sum = dweight_VD + row * features + begin;
#pragma omp simd
      for (std::int64_t d = 0; d < width; ++d) {
        sum[d] += to_float(dy[d]);
      }
    }
  });
}

/// On a device: the tokens of the rows [first_row, first_row + rows) of a table, in memory of one
/// call. All numbers but `place` and `begin` are those of any other run; what is computed from
/// those two is as well.
struct Buckets {
  struct Clear {};
  struct CountToken {};
  struct PlaceBucket {};
  struct Fill {};
  struct Sort {};

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
        sorted(place + tokens) {
    for_each<Clear>("clear_buckets", rows, stream, *this);
    for_each<CountToken>("count_tokens", tokens, stream, *this);
    for_each<PlaceBucket>("place_buckets", rows, stream, *this);
    for_each<Fill>("fill_buckets", tokens, stream, *this);
    for_each<Sort>("sort_buckets", tokens, stream, *this);
  }

  /// Of a token; negative when it is not at hand.
  KOKKOS_FORCEINLINE_FUNCTION std::int64_t row_of(std::int64_t t) const {
    const std::int64_t row = index_T[t] - first_row;
    return row < rows ? row : -1;
  }

  KOKKOS_FUNCTION void operator()(Clear /*step*/, std::int64_t row) const {
    size[row] = 0;
    filled[row] = 0;
    if (row == 0) {
      *used = 0;
    }
  }

  KOKKOS_FUNCTION void operator()(CountToken /*step*/, std::int64_t t) const {
    const std::int64_t row = row_of(t);
    if (row >= 0) {
      Kokkos::atomic_fetch_add(size + row, 1);
    }
  }

  KOKKOS_FUNCTION void operator()(PlaceBucket /*step*/, std::int64_t row) const {
    const std::int32_t tokens = size[row];
    if (tokens > 0) {
      begin[row] = Kokkos::atomic_fetch_add(used, tokens);
    }
  }

  KOKKOS_FUNCTION void operator()(Fill /*step*/, std::int64_t t) const {
    const std::int64_t row = row_of(t);
    if (row >= 0) {
      place[begin[row] + Kokkos::atomic_fetch_add(filled + row, 1)] = static_cast<std::int32_t>(t);
    }
  }

  /// The rank of a token is the number of those before it in its bucket.
  KOKKOS_FUNCTION void operator()(Sort /*step*/, std::int64_t t) const {
    const std::int64_t row = row_of(t);
    if (row < 0) {
      return;
    }
    std::int32_t rank = 0;
    for (std::int32_t i = begin[row]; i < begin[row] + size[row]; ++i) {
      rank += place[i] < t ? 1 : 0;
    }
    sorted[begin[row] + rank] = static_cast<std::int32_t>(t);
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

/// dweight += the rows of dy whose index is among [first_row, first_row + rows of dweight).
template <class T>
void add_to_rows(ConstTensorView index_T, std::int64_t first_row, const T* dy_TD,
                 TensorView dweight_VD, device::StreamRef stream) {
  const auto* const index = index_T.as<std::int32_t>();
  auto* const dweight = dweight_VD.as<float>();
  const std::int64_t rows = dweight_VD.dim(0);
  const std::int64_t features = dweight_VD.dim(1);
  if constexpr (is_for_device) {
    constexpr int n = 4;  // in twice as many threads as with packs of 16 bytes
    const Buckets buckets(index, index_T.elements(), first_row, rows, stream);
    for_each_pack_of_rows<n>("embedding_bwd", rows, features,
                             at_packs<n>(dy_TD) && at_packs<n>(dweight), stream,
                             SumBuckets<T>{buckets, dy_TD, dweight, features});
  } else {
    add_slices(index, index_T.elements(), first_row, rows, dy_TD, dweight, features, stream);
  }
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
    const bool positions = position_weight_PD.data() != nullptr;
    const Embedding<T> body{.token_T = token_T.as<std::int32_t>(),
                            .weight_VD = weight_VD.as<T>(),
                            .first_row = first_row,
                            .rows = weight_VD.dim(0),
                            .position_weight_PD = positions ? position_weight_PD.as<T>() : nullptr,
                            .position_T = positions ? position_T.as<std::int32_t>() : nullptr,
                            .y_TD = y_TD.as<T>(),
                            .features = features};
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
    const EmbeddingAdd<T> body{.token_T = token_T.as<std::int32_t>(),
                               .weight_VD = weight_VD.as<T>(),
                               .first_row = first_row,
                               .rows = weight_VD.dim(0),
                               .y_TD = y_TD.as<T>(),
                               .features = features};
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
  with_storage(dy_TD.dtype(), [&]<class T>(T) {
    add_to_rows(token_T, first_row, dy_TD.as<T>(), dweight_VD, stream);
    if (dposition_weight_PD) {
      add_to_rows(position_T, 0, dy_TD.as<T>(), dposition_weight_PD, stream);
    }
  });
}

}  // namespace fourfold::kernels
