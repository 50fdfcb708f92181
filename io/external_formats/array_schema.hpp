// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "hdf5/sparse_image.hpp"

#include <fourfold/io/array_file.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::io {

/// An HDF5 file with these arrays, without contents: its metadata, and where it ends. Touches no
/// disk. @param byte_offsets  out: of each array's first element
SparseImage make_array_image(std::span<const ArrayToWrite> arrays,
                             std::span<const ArrayFile::Attribute> attributes,
                             std::vector<std::uint64_t>& byte_offsets);

}  // namespace fourfold::io
