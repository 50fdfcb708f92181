// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "head_blocks.hpp"

#include <fourfold/parallel/context_parallel.hpp>

namespace fourfold::parallel {

using kernels::AttentionUse;

std::vector<AttentionUse> attention_uses(const ContextParallelOptions& options, int cp, int rank,
                                         bool deterministic) {
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
  std::vector<AttentionUse> uses;
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
