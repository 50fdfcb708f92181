// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "context_attention.hpp"
#include "head_blocks.hpp"

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

std::vector<kernels::AttentionUse> attention_uses(const ContextParallelOptions& options, int cp,
                                                  int rank, bool deterministic) {
  const kernels::AttentionShape shape{.batch = options.sequences,
                                      .query_tokens = options.tokens,
                                      .key_tokens = options.tokens,
                                      .heads = options.heads,
                                      .kv_heads = options.kv_heads,
                                      .head_dim = options.head_dim,
                                      .deterministic = deterministic};
  if (cp == 1) {
    return {{shape}};
  }
  std::vector<kernels::AttentionUse> uses;
  switch (options.mode) {
    case ContextMode::ring:
      for (int key_rank = 0; key_rank < cp; ++key_rank) {
        for (const ChunkProduct& product : chunk_products(rank, key_rank)) {
          uses.push_back({shape_of(product, shape), true, true});
        }
      }
      break;
    case ContextMode::ulysses:
      uses.push_back({dealt_shape(shape, cp), false, options.kv_heads < cp});
      break;
    case ContextMode::allgather:
      for (const int chunk : {0, 1}) {
        uses.push_back({gathered_shape(shape, cp, rank, chunk), false, true});
      }
      break;
  }
  return uses;
}

}  // namespace fourfold::parallel
