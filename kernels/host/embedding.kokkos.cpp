// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"
#include "storage.hpp"

#include <fourfold/kernels/embedding.hpp>

#include <Kokkos_Core.hpp>

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
    for (std::int64_t d = 0; d < features; ++d) {
      y[d] = only == nullptr ? T{} : only[d];
    }
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
};

/// Adds one slice of features of every row of dy to the rows of the gradients, in order of t.
/// Slices share nothing, so any number of threads gives the same bits.
template <class T>
struct EmbeddingBackward {
  const std::int32_t* token_T;
  const T* dy_TD;
  std::int64_t first_row;
  std::int64_t rows;
  float* dweight_VD;
  const std::int32_t* position_T;
  float* dposition_weight_PD;  ///< or nullptr
  std::int64_t tokens;
  std::int64_t features;

  static constexpr std::int64_t slice_width = 128;

  KOKKOS_FUNCTION void operator()(std::int64_t slice) const {
    const std::int64_t begin = slice * slice_width;
    const std::int64_t width = features - begin < slice_width ? features - begin : slice_width;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const T* dy = dy_TD + t * features + begin;
      const std::int64_t row = token_T[t] - first_row;
      if (row >= 0 && row < rows) {
        add_to(dweight_VD + row * features + begin, dy, width);
      }
      if (dposition_weight_PD != nullptr) {
        add_to(dposition_weight_PD + position_T[t] * features + begin, dy, width);
      }
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static void add_to(float* sum, const T* dy, std::int64_t width) {
#pragma omp simd
    for (std::int64_t d = 0; d < width; ++d) {
      sum[d] += to_float(dy[d]);
    }
  }
};

}  // namespace

void embedding(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
               ConstTensorView position_weight_PD, ConstTensorView position_T, TensorView y_TD,
               device::StreamRef stream) {
  const std::int64_t features = weight_VD.dim(1);
  FOURFOLD_EXPECT(y_TD.elements() == token_T.elements() * features);
  FOURFOLD_EXPECT(!position_weight_PD || (position_weight_PD.dim(1) == features &&
                                          position_T.elements() == token_T.elements()));
  with_storage(y_TD.dtype(), [&]<class T>(T) {
    const bool positions = static_cast<bool>(position_weight_PD);
    for_each(
        "embedding", token_T.elements(), stream,
        Embedding<T>{token_T.as<std::int32_t>(), weight_VD.as<T>(), first_row, weight_VD.dim(0),
                     positions ? position_weight_PD.as<T>() : nullptr,
                     positions ? position_T.as<std::int32_t>() : nullptr, y_TD.as<T>(), features});
  });
}

void embedding_add(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
                   TensorView y_TD, device::StreamRef stream) {
  const std::int64_t features = weight_VD.dim(1);
  FOURFOLD_EXPECT(y_TD.elements() == token_T.elements() * features);
  with_storage(y_TD.dtype(), [&]<class T>(T) {
    for_each("embedding_add", token_T.elements(), stream,
             EmbeddingAdd<T>{token_T.as<std::int32_t>(), weight_VD.as<T>(), first_row,
                             weight_VD.dim(0), y_TD.as<T>(), features});
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
    using Functor = EmbeddingBackward<T>;
    const bool positions = static_cast<bool>(dposition_weight_PD);
    const std::int64_t slices = (features + Functor::slice_width - 1) / Functor::slice_width;
    for_each("embedding_bwd", slices, stream,
             Functor{token_T.as<std::int32_t>(), dy_TD.as<T>(), first_row, dweight_VD.dim(0),
                     dweight_VD.as<float>(), positions ? position_T.as<std::int32_t>() : nullptr,
                     positions ? dposition_weight_PD.as<float>() : nullptr, token_T.elements(),
                     features});
  });
}

}  // namespace fourfold::kernels
