// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/enum_name.hpp>

#include <array>
#include <cstdint>

namespace fourfold::comm {

/// How the collectives of ranks on hosts go.
///
/// An element's sum is taken in an order that depends on the number of ranks alone, so the bits are
/// the same however the elements are cut and whatever the operation: what one part of a program
/// reduces another may reduce and scatter. The order is that of ranks, ((x0 + x1) + x2) + x3; of
/// `tree` alone it is that of pairs, (x0 + x1) + (x2 + x3).
enum class Algorithm : std::uint8_t {
  /// shared where all ranks of the communicator see the same memory and it is quicker there, else
  /// direct.
  automatic,
  /// Messages: each rank reduces its part and sends it to all.
  direct,
  /// Through memory that all ranks see (all_reduce, reduce_scatter, all_gather, broadcast,
  /// barriers; the rest is messages).
  shared,
  /// Messages between neighbours: all_reduce and all_gather go round, the rest as direct. Unlike
  /// the ring of the textbooks, which starts each part at another rank and so adds each in another
  /// order, sums grow from rank 0 to the last, chunk after chunk, and follow each other round
  /// again as results: as many bytes on a link.
  ring,
  /// Messages up and down a binomial tree: all_reduce in log2(ranks) steps, the rest as direct,
  /// with sums in the order of pairs.
  tree,
};

constexpr auto names_of(Algorithm /*any*/) {
  using enum Algorithm;
  return std::to_array<Named<Algorithm>>({{automatic, "auto"},
                                          {direct, "direct"},
                                          {shared, "shared"},
                                          {ring, "ring"},
                                          {tree, "tree"}});
}
using fourfold::name;

}  // namespace fourfold::comm
