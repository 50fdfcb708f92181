// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/model/batch.hpp>

#include <array>
#include <utility>

namespace fourfold::model {
namespace {

constexpr std::array tensors{std::pair(&BatchMemory::token_N, &Batch::token_N),
                             std::pair(&BatchMemory::target_N, &Batch::target_N),
                             std::pair(&BatchMemory::position_N, &Batch::position_N),
                             std::pair(&BatchMemory::sample_N, &Batch::sample_N)};

}  // namespace

BatchMemory::BatchMemory(device::Arena& arena, device::MemoryUse use, std::int64_t rows,
                         const Parts& parts)
    : token_N(parts.token ? arena.take(use, DType::i32, {rows}) : TensorView()),
      target_N(parts.target ? arena.take(use, DType::i32, {rows}) : TensorView()),
      position_N(arena.take(use, DType::i32, {rows})),
      sample_N(parts.sample ? arena.take(use, DType::i64, {rows}) : TensorView()) {}

Batch BatchMemory::place_of(const Batch& batch) const {
  Batch here = batch;
  for (const auto& [mine, given] : tensors) {
    const bool is_copied = this->*mine && batch.*given;
    here.*given = is_copied ? (this->*mine).rows(0, (batch.*given).elements()) : TensorView();
  }
  return here;
}

Batch BatchMemory::copy(const Batch& batch, device::StreamRef stream) const {
  const Batch here = place_of(batch);
  for (const auto& [mine, given] : tensors) {
    if (here.*given) {
      const ConstTensorView from = batch.*given;
      FOURFOLD_EXPECT(from.dtype() == (this->*mine).dtype() &&
                      from.elements() == batch.sequences * batch.tokens);
      device::copy((this->*mine).data(), from.data(), from.bytes(), stream);
    }
  }
  return here;
}

}  // namespace fourfold::model
