// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "allgather_attention.hpp"
#include "ring_attention.hpp"
#include "ulysses_attention.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/context_parallel.hpp>

namespace fourfold::parallel {

std::unique_ptr<ContextParallel> context_parallel(comm::Communicator& cp,
                                                  const ContextParallelOptions& options,
                                                  device::Arena& arena) {
  if (cp.size() == 1) {
    return nullptr;
  }
  FOURFOLD_EXPECT(options.tokens % 2 == 0 && options.sequences > 0);
  switch (options.mode) {
    case ContextMode::ring:
      return std::make_unique<RingAttention>(cp, options, arena);
    case ContextMode::ulysses:
      return std::make_unique<UlyssesAttention>(cp, options, arena);
    case ContextMode::allgather:
      break;
  }
  return std::make_unique<AllgatherAttention>(cp, options, arena);
}

}  // namespace fourfold::parallel
