// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <string_view>
#include <type_traits>

namespace fourfold::comm {
namespace {

template <class T>
concept Half = std::same_as<T, BFloat16> || std::same_as<T, Float16>;
template <class T>
using Accumulator = std::conditional_t<Half<T>, float, T>;

/// Elements per block: the accumulators stay in the first-level cache.
constexpr std::int64_t block_elements = 1024;

template <class T>
bool is_nan(T value) {
  return value != value;  // NOLINT(misc-redundant-expression)
}

template <ReduceOp op, class A>
A combine(A left, A right) {
  if constexpr (op == ReduceOp::max) {
    return is_nan(left) || left > right ? left : right;
  } else if constexpr (op == ReduceOp::min) {
    return is_nan(left) || left < right ? left : right;
  } else if constexpr (std::signed_integral<A>) {  // wraps, as MPI's sum does
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(static_cast<U>(left) + static_cast<U>(right)));
  } else {
    return static_cast<A>(left + right);
  }
}

template <class T, ReduceOp op>
void reduce_typed(std::span<const void* const> inputs, void* output, std::int64_t elements) {
  using A = Accumulator<T>;
  std::array<A, block_elements> accumulator;
  for (std::int64_t begin = 0; begin < elements; begin += block_elements) {
    const std::int64_t count = std::min(block_elements, elements - begin);
    const T* first = static_cast<const T*>(inputs.front()) + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      accumulator[i] = static_cast<A>(first[i]);
    }
    for (const void* input : inputs.subspan(1)) {
      const T* values = static_cast<const T*>(input) + begin;
      for (std::int64_t i = 0; i < count; ++i) {
        accumulator[i] = combine<op>(accumulator[i], static_cast<A>(values[i]));
      }
    }
    if constexpr (op == ReduceOp::avg) {
      const A divisor = static_cast<A>(inputs.size());
      for (std::int64_t i = 0; i < count; ++i) {
        accumulator[i] /= divisor;
      }
    }
    T* result = static_cast<T*>(output) + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      result[i] = static_cast<T>(accumulator[i]);
    }
  }
}

template <class T>
void reduce_op(ReduceOp op, std::span<const void* const> inputs, void* output,
               std::int64_t elements) {
  switch (op) {
    case ReduceOp::sum:
      return reduce_typed<T, ReduceOp::sum>(inputs, output, elements);
    case ReduceOp::max:
      return reduce_typed<T, ReduceOp::max>(inputs, output, elements);
    case ReduceOp::min:
      return reduce_typed<T, ReduceOp::min>(inputs, output, elements);
    case ReduceOp::avg:
      if constexpr (std::floating_point<T> || Half<T>) {
        return reduce_typed<T, ReduceOp::avg>(inputs, output, elements);
      }
  }
  FOURFOLD_ASSERT(!"avg of integers");
}

}  // namespace

void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* output,
            std::int64_t elements) {
  switch (dtype) {
    case DType::f32:
      return reduce_op<float>(op, inputs, output, elements);
    case DType::bf16:
      return reduce_op<BFloat16>(op, inputs, output, elements);
    case DType::f16:
      return reduce_op<Float16>(op, inputs, output, elements);
    case DType::f64:
      return reduce_op<double>(op, inputs, output, elements);
    case DType::i32:
      return reduce_op<std::int32_t>(op, inputs, output, elements);
    case DType::i64:
      return reduce_op<std::int64_t>(op, inputs, output, elements);
    case DType::u8:
      return reduce_op<std::uint8_t>(op, inputs, output, elements);
    case DType::u16:
      return reduce_op<std::uint16_t>(op, inputs, output, elements);
    case DType::u32:
      return reduce_op<std::uint32_t>(op, inputs, output, elements);
    case DType::u64:
      return reduce_op<std::uint64_t>(op, inputs, output, elements);
  }
}

std::string_view name(ReduceOp op) noexcept {
  constexpr std::array<std::string_view, 4> names{"sum", "max", "min", "avg"};
  return names[static_cast<std::size_t>(op)];
}

}  // namespace fourfold::comm
