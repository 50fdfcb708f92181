// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "hdf5/sparse_image.hpp"
#include "hdf5/table_reader.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/checkpoint.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::io {

/// An extent as its dataset "/t/<name>/<state>/b<k>" describes it.
struct PayloadExtent {
  StoredTensor tensor;      ///< without digest
  std::int64_t number = 0;  ///< the k
  Box box;
  std::uint64_t first_chunk = 0;
};

/// What a payload file says of itself and of the save that it belongs to. With that of the first
/// payload file, the payloads alone hold everything that index and manifest are made of.
struct PayloadDescription {
  std::int64_t step = 0;
  comm::MeshShape mesh;
  std::int64_t files = 0;              ///< payload files that the save has
  std::string save;                    ///< run_facts_fingerprint: a check of the scalars
  std::vector<PayloadExtent> extents;  ///< by first chunk; where they lie follows from the order
  // In the first payload file alone:
  std::optional<CheckpointScalars> scalars;
  std::vector<StoredTensor> empty_tensors;  ///< those without elements, which have no dataset
};

/// An HDF5 file of this description with a /_crc32c of table.chunks entries (little-endian u32),
/// all without contents: its metadata, and where it ends. The same input gives the same bytes.
/// Touches no disk.
/// @param byte_offsets        out: where the bytes of each extent belong
/// @param table.byte_offset  out: where those of /_crc32c belong
SparseImage make_payload_image(const PayloadDescription& payload,
                               std::vector<std::uint64_t>& byte_offsets, CrcTable& table);

// /scalars of index.h5 and of the first payload file. Include only from *.hdf5.cpp files.

void write_scalars(hid_t file, const CheckpointScalars& scalars);
/// What is missing or of another type is a defect of the reader.
CheckpointScalars read_scalars(TableReader& reader);

/// Reads it. Shapes and boxes are those of tensors that a file could hold, and names are names;
/// whether anything fits to anything else is left to the caller. Never follows a link out of the
/// file. @return what is wrong
Defect describe_payload(const InputFile& file, PayloadDescription& description);

}  // namespace fourfold::io
