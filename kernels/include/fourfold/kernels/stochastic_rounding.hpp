// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// f32 to bf16, up or down at random (Gupta et al. 2015): of two neighbours in bf16 a number
/// between them becomes the upper one with the probability (x - lower) / (upper - lower), so that
/// the mean of what it becomes is the number, and steps too small for bf16 are not lost. What is a
/// bf16 already stays; NaN stays NaN; beyond the largest bf16 the upper neighbour is infinity.
#pragma once

#include <fourfold/base/philox.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/place.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// Which random bits elements get: a pure function of the key and the number of an element in its
/// logical tensor, so the same on every mesh. Element i of a range is element j = begin + i of a
/// part of that tensor; its number is first + j / row_elements * row_stride + j % row_elements.
struct StochasticRounding {
  PhiloxKey key;                  ///< rounding_key()
  std::int64_t first = 0;         ///< number of the part's first element
  std::int64_t row_elements = 1;  ///< of the part
  std::int64_t row_stride = 1;    ///< of the tensor
  std::int64_t begin = 0;         ///< elements of the part before the range
};

/// One key per (seed, update, tensor). @param tensor  tells tensors apart: name_salt()
inline PhiloxKey rounding_key(std::uint64_t seed, std::int64_t update, std::uint64_t tensor) {
  return philox_key(seed, RandomUse::weight_rounding, mix64(mix64(update) + tensor));
}

/// target (bf16) = source (f32), rounded at random. Stream-ordered; the same bits for any cut.
/// @pre source.elements() == target.elements(); no overlap
void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef stream, Place place = Place::device);

}  // namespace fourfold::kernels
