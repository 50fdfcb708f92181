// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "format/payload_file.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace fourfold::io {

/// An extent as its dataset describes it; where it lies follows from the order.
struct DescribedExtent {
  StoredTensor tensor;  ///< without digest
  std::int64_t number = 0;
  Box box;
  std::uint64_t first_chunk = 0;
};

/// What a payload file says about itself.
struct PayloadDescription {
  PayloadHead head;                          ///< which borrows nothing
  std::optional<CheckpointScalars> scalars;  ///< of the first payload file
  std::vector<DescribedExtent> extents;      ///< by first chunk
};

/// Reads it. Shapes and boxes are those of tensors that a file could hold, and names are names;
/// whether anything fits to anything else is left to the caller. Never follows a link out of the
/// file. @return what is wrong
Defect describe_payload(const InputFile& file, PayloadDescription& description);

}  // namespace fourfold::io
