// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hdf5/sparse_image.hpp"

#include <fourfold/io/array_file.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::io {

struct ArraySchema {
  SparseImage image;                        ///< HDF5's metadata, and where the file ends
  std::vector<std::uint64_t> byte_offsets;  ///< of each array's first element
};

/// An HDF5 file with these arrays, without contents. Touches no disk.
ArraySchema make_array_schema(std::span<const ArrayDescription> arrays,
                              std::span<const ArrayFile::Attribute> attributes);

}  // namespace fourfold::io
