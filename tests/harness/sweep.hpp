// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sweeps over many like cases. A build with AddressSanitizer, in which a case takes five to ten
/// times as long, tries some of them, spread over all; every other build tries each one.
#pragma once

namespace fourfold::harness {

class Sweep {
 public:
  /// @param sanitized_stride  one case in so many is tried under AddressSanitizer. It should divide
  ///   the length of none of the loops, so that each of their values comes
  explicit constexpr Sweep(int sanitized_stride) noexcept : stride_(sanitized_stride) {}
  /// Whether the next case is one to try.
  constexpr bool takes_next() noexcept {
#ifdef __SANITIZE_ADDRESS__
    return cases_++ % stride_ == 0;
#else
    return cases_++ >= 0;
#endif
  }
  /// How many there were, tried or not.
  constexpr int cases() const noexcept {
    return cases_;
  }

 private:
  int stride_;
  int cases_ = 0;
};

}  // namespace fourfold::harness
