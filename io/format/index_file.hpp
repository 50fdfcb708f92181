// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"

#include <string>

namespace fourfold::io {

/// index.h5 as bytes: the extent table, the scalars and the virtual datasets that show every tensor
/// whole. The same input gives the same bytes.
std::string index_bytes(const Manifest& manifest, const Index& index);

/// Reads it. Every number is checked against the manifest and against the others (tensors are
/// covered once, extents lie in their files and do not overlap the CRC tables' ranges, digests add
/// up); nothing is believed before. @return what is wrong
Defect parse_index(const std::string& bytes, const Manifest& manifest, Index& index);

/// The checks of parse_index that need no HDF5.
Defect index_defect(const Manifest& manifest, const Index& index);

}  // namespace fourfold::io
