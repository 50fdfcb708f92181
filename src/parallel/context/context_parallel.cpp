// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "context_attention.hpp"

#include <fourfold/base/contract.hpp>

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
      return ring_attention(cp, options, arena);
    case ContextMode::ulysses:
      return ulysses_attention(cp, options, arena);
    case ContextMode::allgather:
      break;
  }
  return allgather_attention(cp, options, arena);
}

}  // namespace fourfold::parallel
