// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/for_each_pack.hpp"
#include "weight_copy.hpp"

#include <fourfold/kernels/optimizer.hpp>

namespace fourfold::kernels {
namespace {

struct RoundStochastically {
  const float* source;
  StochasticCopy copy;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    for_each_copied(copy, begin, end,
                    [this](std::int64_t i, std::uint32_t bits) { copy.put(i, source[i], bits); });
  }
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float x[n];
    load<n>(source + first, x);
    copy.put_run<n>(first, x);
  }
};

}  // namespace

void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef stream, MemorySpace place) {
  FOURFOLD_EXPECT(source.elements() == target.elements());
  constexpr int n = pack_elements<float>;
  const RoundStochastically body{source.as<float>(),
                                 StochasticCopy(target.as<BFloat16>(), rounding)};
  for_each_pack<n>("round_stochastically", source.elements(),
                   body.copy.at_runs() && at_packs<n>(body.source), place, stream, body);
}

}  // namespace fourfold::kernels
