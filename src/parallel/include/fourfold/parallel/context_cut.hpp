// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How context parallelism cuts sequences: a closed form, the same for all ways of attending over
/// the cut. With C ranks on the cp axis a sequence of T tokens is cut into 2 C equal chunks, and
/// position r holds the chunks r and 2 C - 1 - r, in this order (zig-zag): under a causal mask each
/// rank then has the same number of pairs of queries and keys (docs/adr/0006).
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/enum_name.hpp>
#include <fourfold/model/architecture.hpp>

#include <array>
#include <cstdint>
#include <span>

namespace fourfold::parallel {

/// How queries meet the keys of other ranks.
enum class ContextMode : std::uint8_t { ring, ulysses, allgather };
constexpr auto names_of(ContextMode /*any*/) {
  using enum ContextMode;
  return std::to_array<Named<ContextMode>>(
      {{ring, "ring"}, {ulysses, "ulysses"}, {allgather, "allgather"}});
}
using fourfold::name;

/// The tokens of a sequence that position `rank` holds, in the order it holds them: two chunks; the
/// whole sequence and an empty chunk after it when cp is 1.
/// @pre 0 <= rank < cp; tokens is a multiple of 2 cp (of anything when cp is 1)
std::array<Range, 2> context_chunks(std::int64_t tokens, int cp, int rank);

/// One call of attention between what two positions hold: one chunk of queries and one or both
/// chunks of keys, which it sees all of, or up to itself.
struct ChunkProduct {
  int query_chunk = 0;  ///< 0 or 1: of the two held
  Range key_chunks;     ///< likewise
  bool causal = false;  ///< the last of these keys are those of the queries themselves
  friend bool operator==(const ChunkProduct&, const ChunkProduct&) = default;
};

/// All that the queries of position `rank` see of the keys of position `key_rank`; the same number
/// of pairs for all other positions.
std::span<const ChunkProduct> chunk_products(int rank, int key_rank);

/// @throws UserError (config) when sequences or heads cannot be cut: names the keys and the nearest
///   values that work. @pre validate_tensor_cut(config, tp) passes
void validate_context_cut(const model::Architecture& config, ContextMode mode, int cp, int tp);

}  // namespace fourfold::parallel
