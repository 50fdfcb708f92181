// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sparse_image.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/checkpoint_plan.hpp>

#include <cstdint>
#include <span>
#include <string>

namespace fourfold::io {

/// One dataset that a payload file is to have.
struct PayloadDataset {
  std::string path;  ///< "/t/<name>/<state>/b<k>"
  TensorState state = TensorState::weight;
  DType dtype = DType::f32;
  Shape global_shape;
  Box box;
  std::uint64_t byte_offset = 0;  ///< out: where its bytes lie in the file
};

struct PayloadSchema {
  SparseImage image;               ///< HDF5's metadata, and where the file ends
  std::uint64_t table_offset = 0;  ///< of /_crc32c, `chunks` little-endian u32
};

/// An HDF5 file with these datasets and a /_crc32c of `chunks` entries, all without contents, and
/// where the contents belong. The same input gives the same bytes. Touches no disk.
PayloadSchema make_payload_schema(std::int64_t step, std::span<PayloadDataset> datasets,
                                  std::uint64_t chunks);

}  // namespace fourfold::io
