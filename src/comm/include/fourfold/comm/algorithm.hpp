// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace fourfold::comm {

/// How the collectives of ranks on hosts go.
///
/// A sum is always taken in the order of ranks, so all of them give the same bits, however the
/// elements are cut and whatever the operation: what one part of a program reduces another may
/// reduce and scatter.
enum class Algorithm : std::uint8_t {
  /// shared where all ranks of the communicator see the same memory and it is quicker there, else
  /// direct.
  automatic,
  /// Messages: each rank reduces its part and sends it to all.
  direct,
  /// Through memory that all ranks see (all_reduce, reduce_scatter, all_gather, broadcast,
  /// barriers; the rest is messages).
  shared,
};

/// "auto", "direct", "shared": the spelling of run files and options.
std::string_view name(Algorithm algorithm) noexcept;
std::optional<Algorithm> algorithm_from_name(std::string_view text) noexcept;

}  // namespace fourfold::comm
