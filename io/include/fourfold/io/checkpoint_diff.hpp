// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What two checkpoints have in common and where they differ, whatever meshes saved them.
#pragma once

#include <fourfold/io/checkpoint.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fourfold::io {

/// One element of a tensor in both checkpoints.
struct ElementPair {
  std::vector<std::int64_t> index;
  double a = 0;
  double b = 0;
};

/// A tensor that is not the same in both.
struct TensorDifference {
  enum class Kind { only_in_a, only_in_b, other_type, other_values };
  TensorId id;
  Kind kind = Kind::other_values;
  std::string detail;  ///< of other_type: "f32 [4, 8] and f32 [4, 9]"
  // Of other_values; nothing of them when elements were not asked for:
  std::int64_t elements = 0;         ///< of the tensor
  std::int64_t different = 0;        ///< of these, by bits: +0 and -0 differ, two equal NaN do not
  double max_abs = 0;                ///< largest |a - b|; infinite where one of them is not finite
  double rms = 0;                    ///< sqrt of the mean of (a - b)^2 over all elements; likewise
  std::vector<ElementPair> largest;  ///< the largest differences first
};

struct CheckpointDifferences {
  std::vector<std::string> scalars;       ///< "consumed_samples: 80 and 96", by name
  std::vector<TensorDifference> tensors;  ///< by id
  bool none() const noexcept { return scalars.empty() && tensors.empty(); }
};

struct DiffOptions {
  /// Reads tensors whose digests differ; without, it tells only which.
  bool elements = true;
  std::size_t largest = 3;                              ///< elements that are named of a tensor
  std::int64_t memory_bytes = std::int64_t{256} << 20;  ///< for the parts that are read, about
  /// Told after each part how much of what will be read has been.
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress = {};
};

/// Compares digests, and reads of both what they tell apart, box by box of at most half the
/// memory. Texts (the run file) are not state and are left out. Local; both were opened by one
/// rank.
/// @throws UserError (data_corrupt) naming file and tensor when what is read is damaged, or the
///   elements are the same though the digests differ
CheckpointDifferences compare(const Checkpoint& a, const Checkpoint& b,
                              const DiffOptions& options = {});

}  // namespace fourfold::io
