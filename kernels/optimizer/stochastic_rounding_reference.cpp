// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rounding_bits.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/reference/stochastic_rounding.hpp>

#include <bit>
#include <cmath>

namespace fourfold::kernels::reference {

BFloat16 rounded_stochastically(const StochasticRounding& rounding, std::int64_t i, float value) {
  if (std::isnan(value) || std::isinf(value)) {
    return BFloat16(value);
  }
  const std::int64_t j = rounding.begin + i;
  const std::int64_t number =
      rounding.first + j / rounding.row_elements * rounding.row_stride + j % rounding.row_elements;
  const std::uint32_t bits = rounding_bits(rounding_block(rounding.key, number), number);
  // The neighbour towards zero keeps the upper half of the word; the other one is the next.
  BFloat16 inner;
  inner.bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  BFloat16 outer;
  outer.bits = static_cast<std::uint16_t>(inner.bits + 1);
  const double from = static_cast<float>(inner);
  const double to = std::isinf(static_cast<float>(outer))
                        ? std::copysign(0x1p128, from)
                        : static_cast<double>(static_cast<float>(outer));
  const double share = (static_cast<double>(value) - from) / (to - from);
  return bits < 65536.0 * (1.0 - share) ? inner : outer;
}

void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef /*stream*/, Place /*place*/) {
  FOURFOLD_EXPECT(source.elements() == target.elements());
  for (std::int64_t i = 0; i < source.elements(); ++i) {
    target.as<BFloat16>()[i] = rounded_stochastically(rounding, i, source.as<float>()[i]);
  }
}

}  // namespace fourfold::kernels::reference
