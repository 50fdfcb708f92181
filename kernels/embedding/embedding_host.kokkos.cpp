// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "embedding_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/storage.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>

namespace fourfold::kernels {
namespace {

template <class T>
void add_to(float* sum, const T* dy, std::int64_t width) {
#pragma omp simd
  for (std::int64_t d = 0; d < width; ++d) {
    sum[d] += to_float(dy[d]);
  }
}

}  // namespace

template <class T>
void embed_tokens(const EmbeddingOperands<T>& with, device::StreamRef stream) {
  for_each("embedding", with.tokens, stream, [with](std::int64_t t) {
    const std::int64_t row = with.token_T[t] - with.first_row;
    const T* token = row >= 0 && row < with.rows ? with.weight_VD + row * with.features : nullptr;
    const T* position = with.position_weight_PD == nullptr
                            ? nullptr
                            : with.position_weight_PD + with.position_T[t] * with.features;
    T* y = with.y_TD + t * with.features;
    if (token != nullptr && position != nullptr) {
#pragma omp simd
      for (std::int64_t d = 0; d < with.features; ++d) {
        store(y[d], to_float(token[d]) + to_float(position[d]));
      }
      return;
    }
    const T* only = token != nullptr ? token : position;
    if (only != nullptr) {
      std::copy_n(only, with.features, y);
    } else {
      std::fill_n(y, with.features, T{});
    }
  });
}
template void embed_tokens(const EmbeddingOperands<float>&, device::StreamRef);
template void embed_tokens(const EmbeddingOperands<BFloat16>&, device::StreamRef);
template void embed_tokens(const EmbeddingOperands<Float16>&, device::StreamRef);

template <class T>
void add_embeddings(const EmbeddingOperands<T>& with, device::StreamRef stream) {
  for_each("embedding_add", with.tokens, stream, [with](std::int64_t t) {
    const std::int64_t row = with.token_T[t] - with.first_row;
    if (row < 0 || row >= with.rows) {
      return;
    }
    const T* token = with.weight_VD + row * with.features;
    T* y = with.y_TD + t * with.features;
#pragma omp simd
    for (std::int64_t d = 0; d < with.features; ++d) {
      store(y[d], to_float(y[d]) + to_float(token[d]));
    }
  });
}
template void add_embeddings(const EmbeddingOperands<float>&, device::StreamRef);
template void add_embeddings(const EmbeddingOperands<BFloat16>&, device::StreamRef);
template void add_embeddings(const EmbeddingOperands<Float16>&, device::StreamRef);

/// Adds one slice of features of every row of dy to the rows of the gradients, in order of t.
/// Slices share nothing, so any number of threads gives the same bits.
template <class T>
void differentiate_embedding(const EmbeddingGradients<T>& with, device::StreamRef stream) {
  constexpr std::int64_t slice_width = 128;
  const std::int64_t slices = (with.features + slice_width - 1) / slice_width;
  for_each("embedding_bwd", slices, stream, [with](std::int64_t slice) {
    const std::int64_t begin = slice * slice_width;
    const std::int64_t width =
        with.features - begin < slice_width ? with.features - begin : slice_width;
    for (std::int64_t t = 0; t < with.tokens; ++t) {
      const T* dy = with.dy_TD + t * with.features + begin;
      const std::int64_t row = with.token_T[t] - with.first_row;
      if (row >= 0 && row < with.rows) {
        add_to(with.dweight_VD + row * with.features + begin, dy, width);
      }
      if (with.dposition_weight_PD != nullptr) {
        add_to(with.dposition_weight_PD + with.position_T[t] * with.features + begin, dy, width);
      }
    }
  });
}
template void differentiate_embedding(const EmbeddingGradients<float>&, device::StreamRef);
template void differentiate_embedding(const EmbeddingGradients<BFloat16>&, device::StreamRef);
template void differentiate_embedding(const EmbeddingGradients<Float16>&, device::StreamRef);

}  // namespace fourfold::kernels
