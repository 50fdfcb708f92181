// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/harness/shared_vector.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::comm {

/// Numbers whose sums over up to 8 ranks are exact in every type: |(rank + 1) * (-3 .. 3)| adds up
/// to at most 108, and bf16 counts to 256.
inline int pattern(int rank, std::int64_t i) {
  return (rank + 1) * (static_cast<int>(i % 7) - 3);
}

/// The reduction of pattern() over all ranks, by formula.
inline double reduced_pattern(ReduceOp op, int ranks, std::int64_t i) {
  const int sign = static_cast<int>(i % 7) - 3;
  const double sum = sign * ranks * (ranks + 1) / 2.0;
  switch (op) {
    case ReduceOp::sum:
      return sum;
    case ReduceOp::avg:
      return sum / ranks;
    case ReduceOp::max:
      return sign > 0 ? sign * ranks : sign;
    case ReduceOp::min:
      return sign < 0 ? sign * ranks : sign;
  }
  return 0;
}

template <class T>
T number(double value) {
  if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// What is communicated lies where devices reach it too.
template <class T>
using Values = harness::SharedVector<T>;

template <class T>
Values<T> filled(int rank, std::int64_t elements, std::int64_t first = 0) {
  Values<T> values(static_cast<std::size_t>(elements));
  for (std::int64_t i = 0; i < elements; ++i) {
    values[i] = number<T>(pattern(rank, first + i));
  }
  return values;
}

template <class T>
TensorView view(Values<T>& values) {
  return {values.data(), {std::ssize(values)}};
}

template <class T>
ConstTensorView view(const Values<T>& values) {
  return {values.data(), {std::ssize(values)}};
}

template <class T>
double value_of(T value) {
  if constexpr (sizeof(T) == 2) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

/// Index of the first element that is not what `expected(i)` says, or -1. Compares bits, unless
/// something relative is allowed.
template <class T, class Expected>
std::int64_t first_wrong(const Values<T>& values, Expected expected, double tolerance = 0) {
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    const double wanted = expected(i);
    const double error = std::abs(value_of(values[i]) - wanted);
    const bool is_right =
        tolerance > 0 ? error <= tolerance * std::abs(wanted) : values[i] == number<T>(wanted);
    if (!is_right) {
      return i;
    }
  }
  return -1;
}

/// What an average may be off by: nothing, except where it is made of scaled values.
template <class T>
double tolerance_of(const Communicator& world, ReduceOp op) {
  return op != ReduceOp::avg || world.sums_in_rank_order() ? 0 : sizeof(T) == 2 ? 0.02 : 1e-6;
}

/// Parts of different lengths, some empty.
inline std::vector<std::int64_t> ragged_counts(int ranks, std::int64_t scale) {
  std::vector<std::int64_t> counts;
  for (int rank = 0; rank < ranks; ++rank) {
    counts.push_back(rank % 3 == 1 ? 0 : scale * (rank + 1) + rank);
  }
  return counts;
}

}  // namespace fourfold::comm
