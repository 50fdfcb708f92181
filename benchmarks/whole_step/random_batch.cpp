// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "random_batch.hpp"

#include <fourfold/base/philox.hpp>

#include <algorithm>
#include <vector>

namespace fourfold::benchmarks {
namespace {

template <class T>
device::Tensor on_device(DType dtype, const std::vector<T>& values) {
  device::Tensor tensor(dtype, Shape{static_cast<std::int64_t>(values.size())},
                        device::MemoryKind::device);
  device::copy(tensor.view().data(), values.data(), tensor.view().bytes(), {});
  return tensor;
}

}  // namespace

RandomBatch::RandomBatch(std::int64_t sequences, std::int64_t tokens, std::int64_t vocab,
                         std::uint64_t salt) {
  std::vector<std::int32_t> token(static_cast<std::size_t>(sequences * tokens));
  std::vector<std::int32_t> position(token.size());
  const PhiloxKey key = philox_key(2, RandomUse::test, salt);
  for (std::size_t row = 0; row < token.size(); ++row) {
    token[row] =
        static_cast<std::int32_t>(philox(key, row).word[0] % static_cast<std::uint32_t>(vocab));
    position[row] = static_cast<std::int32_t>(static_cast<std::int64_t>(row) % tokens);
  }
  token_ = on_device(DType::i32, token);
  std::rotate(token.begin(), token.begin() + 1, token.end());
  target_ = on_device(DType::i32, token);
  position_ = on_device(DType::i32, position);
  sample_ = on_device(DType::i64, std::vector<std::int64_t>(token.size()));
  device::StreamRef{}.synchronize();
  batch_ = {.sequences = sequences,
            .tokens = tokens,
            .token_N = token_,
            .target_N = target_,
            .position_N = position_,
            .sample_N = sample_};
}

}  // namespace fourfold::benchmarks
