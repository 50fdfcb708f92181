// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/exchange/collective_benchmark.hpp>

#include <array>
#include <concepts>
#include <limits>

namespace fourfold::exchange {
namespace {

/// A prime beyond every power of two that pieces are cut at, whose values bf16 still holds.
constexpr std::int64_t period = 509;

/// Element i of rank r before the call: -254 .. 254.
std::int64_t value(std::int64_t rank, std::int64_t i) {
  return (i + 101 * rank) % period - period / 2;
}

template <class T>
T number(std::int64_t value) {
  if constexpr (sizeof(T) == 2) {
    return T(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}

/// The sum over all ranks, by the place's remainder.
std::array<std::int64_t, period> sums(int ranks) {
  std::array<std::int64_t, period> result{};
  for (std::int64_t i = 0; i < period; ++i) {
    for (int rank = 0; rank < ranks; ++rank) {
      result[i] += value(rank, i);
    }
  }
  return result;
}

template <class T, class Expected>
std::int64_t count_wrong(std::span<const T> values, Expected expected) {
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < std::ssize(values); ++i) {
    wrong += values[i] == number<T>(expected(i)) ? 0 : 1;
  }
  return wrong;
}

}  // namespace

CollectiveBenchmark::CollectiveBenchmark(Operation operation, const Extent& extent, DType dtype,
                                         comm::Communicator& line)
    : operation_(operation),
      extent_(extent),
      line_(&line),
      counts_(line.size(), extent.count),
      send_(dtype, {extent.send_elements}),
      recv_(dtype, {extent.recv_elements}) {
  device::zero(send_.view().data(), send_.view().bytes(), {});  // so that its pages are there
  device::zero(recv_.view().data(), recv_.view().bytes(), {});
}

void CollectiveBenchmark::run() {
  switch (operation_) {
    case Operation::all_reduce:
      return line_->all_reduce(recv_, comm::ReduceOp::sum, {}).wait({});
    case Operation::all_gather:
      return line_->all_gather(send_, recv_, counts_, {}).wait({});
    case Operation::reduce_scatter:
      return line_->reduce_scatter(send_, recv_, counts_, comm::ReduceOp::sum, {}).wait({});
    case Operation::all_to_all:
      return line_->all_to_all(send_, counts_, recv_, counts_, {}).wait({});
    case Operation::send_recv: {
      comm::Work incoming = line_->recv(recv_, before(), 0, {});
      comm::Work outgoing = line_->send(send_, after(), 0, {});
      incoming.wait({});
      outgoing.wait({});
    }
  }
}

bool CollectiveBenchmark::library_can() const {
  const bool reduces =
      operation_ == Operation::all_reduce || operation_ == Operation::reduce_scatter;
  return extent_.count <= std::numeric_limits<int>::max() &&
         (!reduces || comm::LibraryCollectives::can_reduce(recv_.view().dtype()));
}

void CollectiveBenchmark::run_library(comm::LibraryCollectives& library) {
  FOURFOLD_EXPECT(library_can());
  switch (operation_) {
    case Operation::all_reduce:
      return library.all_reduce(recv_, comm::ReduceOp::sum);
    case Operation::all_gather:
      return library.all_gather(send_, recv_);
    case Operation::reduce_scatter:
      return library.reduce_scatter(send_, recv_, comm::ReduceOp::sum);
    case Operation::all_to_all:
      return library.all_to_all(send_, recv_);
    case Operation::send_recv:
      return library.exchange(send_, after(), recv_, before());
  }
}

template <class T>
std::int64_t CollectiveBenchmark::wrong_elements_typed() {
  const int rank = line_->rank();
  const std::int64_t count = extent_.count;
  const std::span<T> input(
      operation_ == Operation::all_reduce ? recv_.as<T>() : send_.as<T>(),
      operation_ == Operation::all_reduce ? extent_.recv_elements : extent_.send_elements);
  for (std::int64_t i = 0; i < std::ssize(input); ++i) {
    input[i] = number<T>(value(rank, i));
  }
  run();
  const std::span<const T> output(recv_.as<T>(), extent_.recv_elements);
  const auto sum_at = [table = sums(line_->size())](std::int64_t i) { return table[i % period]; };
  switch (operation_) {
    case Operation::all_reduce:
      return count_wrong(output, sum_at);
    case Operation::all_gather:
      return count_wrong(output, [&](std::int64_t i) { return value(i / count, i % count); });
    case Operation::reduce_scatter:
      return count_wrong(output, [&](std::int64_t i) { return sum_at(rank * count + i); });
    case Operation::all_to_all:
      return count_wrong(
          output, [&](std::int64_t i) { return value(i / count, rank * count + i % count); });
    case Operation::send_recv:
      break;
  }
  return count_wrong(output, [&](std::int64_t i) { return value(before(), i); });
}

std::int64_t CollectiveBenchmark::wrong_elements() {
  const auto wrong = [this] {
    switch (recv_.view().dtype()) {
      case DType::f32:
        return wrong_elements_typed<float>();
      case DType::bf16:
        return wrong_elements_typed<BFloat16>();
      case DType::f16:
        return wrong_elements_typed<Float16>();
      case DType::f64:
        return wrong_elements_typed<double>();
      case DType::i32:
        return wrong_elements_typed<std::int32_t>();
      case DType::i64:
        return wrong_elements_typed<std::int64_t>();
      case DType::u8:
      case DType::u16:
      case DType::u32:
      case DType::u64:
        break;
    }
    FOURFOLD_ASSERT(false && "a type without a sign");
    return std::int64_t{0};
  }();
  device::zero(send_.view().data(), send_.view().bytes(), {});
  device::zero(recv_.view().data(), recv_.view().bytes(), {});
  return wrong;
}

}  // namespace fourfold::exchange
