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
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// One dataset that a payload file is to have.
struct PayloadDataset {
  std::string path;  ///< "/t/<name>/<state>/b<k>"
  TensorState state = TensorState::weight;
  DType dtype = DType::f32;
  Shape global_shape;
  Box box;
  std::uint64_t first_chunk = 0;
  std::uint64_t byte_offset = 0;  ///< out: where its bytes lie in the file
};

/// What a payload says of the save that it belongs to. With the head of the first payload file, the
/// payloads alone hold everything that index and manifest are made of.
struct PayloadHead {
  std::int64_t step = 0;
  comm::MeshShape mesh;
  std::int64_t files = 0;  ///< payload files that the save has
  std::string save;        ///< run_facts_fingerprint: a check of the scalars
  // In the first payload file alone:
  const CheckpointScalars* scalars = nullptr;  ///< borrowed
  std::vector<StoredTensor> empty_tensors;     ///< those without elements, which have no dataset
};

struct PayloadSchema {
  SparseImage image;               ///< HDF5's metadata, and where the file ends
  std::uint64_t table_offset = 0;  ///< of /_crc32c, `chunks` little-endian u32
};

/// An HDF5 file with this head, these datasets and a /_crc32c of `chunks` entries, all without
/// contents, and where the contents belong. The same input gives the same bytes. Touches no disk.
PayloadSchema make_payload_schema(const PayloadHead& head, std::span<PayloadDataset> datasets,
                                  std::uint64_t chunks);

// /scalars of index.h5 and of the first payload file. Include only from *.hdf5.cpp files.

void write_scalars(hid_t file, const CheckpointScalars& scalars);
/// What is missing or of another type is a defect of the reader.
CheckpointScalars read_scalars(TableReader& reader);

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
