// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "operands.hpp"

#include <fourfold/base/philox.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::benchmarks {
namespace {

/// A tensor holds these many numbers over and over: a prime, so that no two rows are alike.
constexpr std::int64_t distinct_numbers = 1000003;

/// Random words for a tensor; every tensor gets others.
std::vector<std::uint32_t> random_words(std::int64_t count) {
  static std::uint64_t tensors = 0;
  const PhiloxKey key = philox_key(3, RandomUse::test, tensors++);
  std::vector<std::uint32_t> words(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < words.size(); i += 4) {
    const PhiloxBlock block = philox(key, i);
    std::copy_n(block.word, std::min<std::size_t>(4, words.size() - i), words.begin() + i);
  }
  return words;
}

template <class T>
device::Tensor repeated(DType dtype, Shape shape, const std::vector<T>& block) {
  device::Tensor tensor(dtype, shape, device::MemoryKind::device);
  auto* const begin = static_cast<std::byte*>(tensor.view().data());
  const std::size_t bytes = tensor.view().bytes();
  const std::size_t block_bytes = std::min(bytes, block.size() * sizeof(T));
  device::copy(begin, block.data(), block_bytes, {});
  for (std::size_t done = block_bytes; done < bytes; done += block_bytes) {
    device::copy(begin + done, begin, std::min(block_bytes, bytes - done), {});
  }
  device::StreamRef{}.synchronize();
  return tensor;
}

}  // namespace

device::Tensor random_tensor(DType dtype, Shape shape, float low, float high) {
  std::vector<float> numbers;
  for (const std::uint32_t word : random_words(std::min(shape.elements(), distinct_numbers))) {
    numbers.push_back(low + (high - low) * uniform_float(word));
  }
  if (dtype == DType::bf16) {
    return repeated(dtype, shape, std::vector<BFloat16>(numbers.begin(), numbers.end()));
  }
  return repeated(dtype, shape, numbers);
}

device::Tensor random_integers(Shape shape, std::int64_t limit) {
  std::vector<std::int32_t> numbers;
  for (const std::uint32_t word : random_words(std::min(shape.elements(), distinct_numbers))) {
    numbers.push_back(static_cast<std::int32_t>(word % static_cast<std::uint32_t>(limit)));
  }
  return repeated(DType::i32, shape, numbers);
}

device::Tensor counting_integers(std::int64_t count, std::int64_t period) {
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(period));
  std::iota(numbers.begin(), numbers.end(), 0);
  return repeated(DType::i32, Shape{count}, numbers);
}

}  // namespace fourfold::benchmarks
