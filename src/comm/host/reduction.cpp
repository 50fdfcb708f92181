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

template <class T>
using Block = std::array<Accumulator<T>, block_elements>;

template <class T>
void load(const void* input, std::int64_t begin, std::int64_t count, Accumulator<T>* values) {
  const T* const source = static_cast<const T*>(input) + begin;
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = static_cast<Accumulator<T>>(source[i]);
  }
}

template <class T, ReduceOp op>
void reduce_in_order(std::span<const void* const> inputs, std::int64_t begin, std::int64_t count,
                     Block<T>& sum) {
  using A = Accumulator<T>;
  load<T>(inputs.front(), begin, count, sum.data());
  for (const void* input : inputs.subspan(1)) {
    const T* const values = static_cast<const T*>(input) + begin;
    for (std::int64_t i = 0; i < count; ++i) {
      sum[i] = combine<op>(sum[i], static_cast<A>(values[i]));
    }
  }
}

/// The first input with the next one, two, four, ... of those before `width`, each of them reduced
/// likewise.
template <class T, ReduceOp op>
void reduce_in_pairs(std::span<const void* const> inputs, std::size_t width, std::int64_t begin,
                     std::int64_t count, Block<T>& sum) {
  load<T>(inputs.front(), begin, count, sum.data());
  for (std::size_t step = 1; step < width && step < inputs.size(); step *= 2) {
    Block<T> other;
    reduce_in_pairs<T, op>(inputs.subspan(step), step, begin, count, other);
    for (std::int64_t i = 0; i < count; ++i) {
      sum[i] = combine<op>(sum[i], other[i]);
    }
  }
}

template <class T, ReduceOp op>
void store(const Accumulator<T>* values, std::size_t ranks, std::int64_t count, T* output) {
  using A = Accumulator<T>;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (op == ReduceOp::avg) {
      output[i] = static_cast<T>(values[i] / static_cast<A>(ranks));
    } else {
      output[i] = static_cast<T>(values[i]);
    }
  }
}

template <class T, ReduceOp op>
void reduce_typed(std::span<const void* const> inputs, void* output, std::int64_t elements,
                  Order order) {
  Block<T> sum;
  for (std::int64_t begin = 0; begin < elements; begin += block_elements) {
    const std::int64_t count = std::min(block_elements, elements - begin);
    if (order == Order::ranks) {
      reduce_in_order<T, op>(inputs, begin, count, sum);
    } else {
      reduce_in_pairs<T, op>(inputs, inputs.size(), begin, count, sum);
    }
    store<T, op>(sum.data(), inputs.size(), count, static_cast<T*>(output) + begin);
  }
}

/// Calls `visit` with an element of the type.
template <class Visit>
void with_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32:
      return visit(float{});
    case DType::bf16:
      return visit(BFloat16{});
    case DType::f16:
      return visit(Float16{});
    case DType::f64:
      return visit(double{});
    case DType::i32:
      return visit(std::int32_t{});
    case DType::i64:
      return visit(std::int64_t{});
    case DType::u8:
      return visit(std::uint8_t{});
    case DType::u16:
      return visit(std::uint16_t{});
    case DType::u32:
      return visit(std::uint32_t{});
    case DType::u64:
      return visit(std::uint64_t{});
  }
}

/// Calls `visit` with the operation as a constant.
template <class T, class Visit>
void with_op(ReduceOp op, const Visit& visit) {
  switch (op) {
    case ReduceOp::sum:
      return visit(std::integral_constant<ReduceOp, ReduceOp::sum>{});
    case ReduceOp::max:
      return visit(std::integral_constant<ReduceOp, ReduceOp::max>{});
    case ReduceOp::min:
      return visit(std::integral_constant<ReduceOp, ReduceOp::min>{});
    case ReduceOp::avg:
      if constexpr (std::floating_point<T> || Half<T>) {
        return visit(std::integral_constant<ReduceOp, ReduceOp::avg>{});
      }
  }
  FOURFOLD_ASSERT(false && "avg of integers");
}

}  // namespace

void reduce(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* output,
            std::int64_t elements, Order order) {
  with_type(dtype, [&]<class T>(T) {
    with_op<T>(op, [&](auto constant) {
      reduce_typed<T, decltype(constant)::value>(inputs, output, elements, order);
    });
  });
}

DType accumulator_of(DType dtype) noexcept {
  return dtype == DType::bf16 || dtype == DType::f16 ? DType::f32 : dtype;
}

void begin_partial(DType dtype, const void* input, void* partial, std::int64_t elements) {
  with_type(dtype, [&]<class T>(T) {
    load<T>(input, 0, elements, static_cast<Accumulator<T>*>(partial));
  });
}

void join_partials(DType dtype, ReduceOp op, const void* left, const void* right, void* joined,
                   std::int64_t elements) {
  with_type(accumulator_of(dtype), [&]<class T>(T) {
    if constexpr (!Half<T>) {
      with_op<T>(op, [&](auto constant) {
        const auto* const a = static_cast<const T*>(left);
        const auto* const b = static_cast<const T*>(right);
        auto* const result = static_cast<T*>(joined);
        for (std::int64_t i = 0; i < elements; ++i) {
          result[i] = combine<decltype(constant)::value>(a[i], b[i]);
        }
      });
    }
  });
}

void end_partial(DType dtype, ReduceOp op, int ranks, const void* partial, void* output,
                 std::int64_t elements) {
  with_type(dtype, [&]<class T>(T) {
    with_op<T>(op, [&](auto constant) {
      store<T, decltype(constant)::value>(static_cast<const Accumulator<T>*>(partial),
                                          static_cast<std::size_t>(ranks), elements,
                                          static_cast<T*>(output));
    });
  });
}

std::string_view name(ReduceOp op) noexcept {
  constexpr std::array<std::string_view, 4> names{"sum", "max", "min", "avg"};
  return names[static_cast<std::size_t>(op)];
}

}  // namespace fourfold::comm
