// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What embedding.cpp asks of embedding_host.kokkos.cpp or embedding_device.kokkos.cpp, which
/// instantiates it for each storage.
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

template <class T>
struct EmbeddingOperands {
  const std::int32_t* token_T;
  const T* weight_VD;
  std::int64_t first_row;
  std::int64_t rows;            ///< at hand
  const T* position_weight_PD;  ///< or nullptr
  const std::int32_t* position_T;
  T* y_TD;
  std::int64_t tokens;
  std::int64_t features;
};

/// embedding()
template <class T>
void embed_tokens(const EmbeddingOperands<T>& with, device::StreamRef stream);

/// embedding_add()
template <class T>
void add_embeddings(const EmbeddingOperands<T>& with, device::StreamRef stream);

template <class T>
struct EmbeddingGradients {
  const std::int32_t* token_T;
  const T* dy_TD;
  std::int64_t first_row;
  std::int64_t rows;
  float* dweight_VD;
  const std::int32_t* position_T;
  std::int64_t positions;
  float* dposition_weight_PD;  ///< or nullptr
  std::int64_t tokens;
  std::int64_t features;
};

/// embedding_backward()
template <class T>
void differentiate_embedding(const EmbeddingGradients<T>& with, device::StreamRef stream);

}  // namespace fourfold::kernels
