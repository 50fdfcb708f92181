// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Element-wise kernels, of devices alone or of both kinds. A device's thread has n neighbouring
/// elements, which it reads and writes in accesses of up to 16 bytes; where the operands do not lie
/// at such borders, and at the end of a range, one element. A body is body(first, Count<n>) or,
/// over rows, body(row, first, Count<n>), and gives the same bits for either n. What a host runs
/// too is also body(begin, end), over a block of elements, or body(row), over a whole row.
#pragma once

#include "divisor.hpp"
#include "packs.hpp"
#include "runtime/launch.hpp"
#include "storage.hpp"

#include <fourfold/kernels/operands.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {

template <int n>
using Count = std::integral_constant<int, n>;

template <int n, class Body>
struct PackOfElements {
  Body body;
  std::int64_t elements;
  KOKKOS_FUNCTION void operator()(std::int64_t pack) const {
    const std::int64_t first = pack * n;
    if (first + n <= elements) {
      body(first, Count<n>{});
      return;
    }
    for (std::int64_t i = first; i < elements; ++i) {
      body(i, Count<1>{});
    }
  }
};

/// body(first, Count<n>) over [0, elements); on a host body(begin, end), in blocks as
/// for_each_block has. @param aligned  at_packs() of all operands
template <int n, class Body>
void for_each_pack(const char* label, std::int64_t elements, bool aligned, device::StreamRef stream,
                   const Body& body) {
  if constexpr (!is_for_device) {
    for_each_block(label, elements, stream, body);
  } else if (aligned) {
    for_each(label, (elements + n - 1) / n, stream, PackOfElements<n, Body>{body, elements});
  } else {
    for_each(label, elements, stream, PackOfElements<1, Body>{body, elements});
  }
}

/// The same on whatever computes at `place`.
template <int n, class Body>
void for_each_pack(const char* label, std::int64_t elements, bool aligned, MemorySpace place,
                   device::StreamRef stream, const Body& body) {
  if (place == MemorySpace::host) {
    for_each_block_on_host(label, elements, body);
  } else {
    for_each_pack<n>(label, elements, aligned, stream, body);
  }
}

template <int n, class Body>
struct PackOfRow {
  Body body;
  Divisor packs;  ///< of a row
  KOKKOS_FUNCTION void operator()(std::int64_t index) const {
    const std::int64_t row = packs.quotient(index);
    body(row, (index - row * packs.value()) * n, Count<n>{});
  }
};

/// body(row, first, Count<n>) over [0, features) of each row; on a host body(row), if it has that.
/// @param aligned  at_packs() of all operands, in every row
template <int n, class Body>
void for_each_pack_of_rows(const char* label, std::int64_t rows, std::int64_t features,
                           bool aligned, device::StreamRef stream, const Body& body) {
  if (features == 0) {
    return;
  }
  if constexpr (!is_for_device && std::is_invocable_v<const Body&, std::int64_t>) {
    for_each(label, rows, stream, body);
  } else if (aligned && features % n == 0) {
    for_each(label, rows * (features / n), stream, PackOfRow<n, Body>{body, Divisor(features / n)});
  } else {
    for_each(label, rows * features, stream, PackOfRow<1, Body>{body, Divisor(features)});
  }
}

}  // namespace fourfold::kernels
