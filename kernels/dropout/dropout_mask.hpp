// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which random word decides over an element of a dropout: the definition that the fast and the
/// reference body share. A change here changes every run that uses dropout.
#pragma once

#include <fourfold/base/philox.hpp>
#include <fourfold/kernels/dropout.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// One key per (seed, step, site).
inline PhiloxKey dropout_key(const DropoutSite& site) {
  const std::uint64_t salt = mix64(mix64(site.step) + site.site);
  return philox_key(site.seed, RandomUse::dropout, salt);
}

/// Features 4 b .. 4 b + 3 of a row share the Philox block b: this is the low half of its counter;
/// the high half is the sample.
FOURFOLD_PHILOX_FUNCTION std::uint64_t dropout_counter(std::int32_t position,
                                                       std::int64_t feature_block) {
  const std::uint64_t sign_extended = position;
  return (sign_extended << 32) | static_cast<std::uint32_t>(feature_block);
}

/// The word for feature `feature` of a row.
inline std::uint32_t dropout_word(const DropoutSite& site, std::int64_t sample,
                                  std::int32_t position, std::int64_t feature) {
  const PhiloxBlock block =
      philox(dropout_key(site), dropout_counter(position, feature / 4), sample);
  return block.word[feature % 4];
}

/// Words below this drop their element: probability * 2^32.
inline std::uint32_t dropout_threshold(float probability) {
  return static_cast<std::uint32_t>(probability * 4294967296.0);
}

inline bool keeps(std::uint32_t word, float probability) {
  return word >= dropout_threshold(probability);
}

}  // namespace fourfold::kernels
