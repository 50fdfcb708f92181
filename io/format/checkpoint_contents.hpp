// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A checkpoint as its files describe it, after manifest.json.cpp and index_read.hdf5.cpp.
#pragma once

#include "disk/file.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/digest.hpp>
#include <fourfold/io/fingerprint.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

inline constexpr std::int64_t format_version = 1;
/// Payload bytes are covered by one CRC-32C per this many bytes of an extent.
inline constexpr std::uint64_t chunk_bytes = std::uint64_t{4} << 20;
/// So much is checked at a time: it is in the core's own cache for the next check.
inline constexpr std::uint64_t hot_bytes = std::uint64_t{256} << 10;
inline constexpr std::uint64_t chunks_of(std::uint64_t bytes) {
  return (bytes + chunk_bytes - 1) / chunk_bytes;
}

inline constexpr const char* manifest_name = "MANIFEST.json";
inline constexpr const char* index_name = "index.h5";
std::string step_folder_name(std::int64_t step);     ///< "step-000000010"
std::string payload_file_name(int file, int files);  ///< "shard-00003-of-00016.h5"
/// Which payload file of how many a name stands for; nothing for other names.
struct PayloadNumber {
  int file = 0;
  int files = 1;
};
std::optional<PayloadNumber> payload_number(std::string_view name) noexcept;
/// Of files that nobody has put into a folder: NFS, FUSE and SMB keep one that is removed while it
/// is open, macOS and Windows leave how they show the folder, and attributes of a step's own files.
bool is_left_by_file_system(std::string_view name) noexcept;
std::string extent_path(const TensorId& id, std::int64_t number);  ///< "/t/<name>/<state>/b0"

/// Bytes of a tensor or extent of this shape, unless that is more than any file holds.
std::optional<std::uint64_t> stored_bytes(const Shape& shape, DType dtype) noexcept;
/// Whether a tensor may be called so.
bool is_tensor_name(std::string_view name) noexcept;

struct Manifest {
  std::int64_t step = 0;
  std::string identity;
  std::string model;  ///< model_fingerprint
  comm::MeshShape mesh;
  std::uint64_t index_bytes = 0;
  std::uint32_t index_crc32c = 0;
  std::vector<StoredFile> files;  ///< by name
  std::map<TensorId, Digest> digests;
};

/// One dataset of a payload file.
struct StoredExtent {
  std::size_t tensor = 0;   ///< index into Index::tensors
  std::size_t file = 0;     ///< index into Manifest::files
  std::int64_t number = 0;  ///< within the tensor: the k of b<k>
  Box box;
  std::uint64_t byte_offset = 0;  ///< in the file
  std::uint64_t bytes = 0;
  std::uint64_t first_chunk = 0;  ///< entry in the file's /_crc32c of its first 4 MiB
  Digest digest;
};

/// Where a payload file keeps its CRC table.
struct CrcTable {
  std::uint64_t byte_offset = 0;
  std::uint64_t chunks = 0;
};

/// What index.h5 says.
struct Index {
  std::vector<StoredTensor> tensors;  ///< by id
  std::vector<StoredExtent> extents;  ///< by (tensor, number)
  std::vector<CrcTable> tables;       ///< one per file
  CheckpointScalars scalars;
};

struct CheckpointContents {
  std::filesystem::path path;
  Manifest manifest;
  Index index;
  /// extents of tensor i: [first_extent[i], first_extent[i + 1])
  std::vector<std::size_t> first_extent;
};

/// index.h5 as bytes: the extent table, the scalars and the virtual datasets that show every tensor
/// whole. The same input gives the same bytes.
std::string index_bytes(const Manifest& manifest, const Index& index);

/// Reads it. Every number is checked against the manifest and against the others (tensors are
/// covered once, extents lie in their files and do not overlap the CRC tables' ranges, digests add
/// up); nothing is believed before. @return what is wrong
Defect parse_index(const std::string& bytes, const Manifest& manifest, Index& index);

/// The checks of parse_index that need no HDF5.
Defect index_defect(const Manifest& manifest, const Index& index);

/// MANIFEST.json: the file whose presence and checksum make a folder a checkpoint. Its last member
/// is the CRC-32C of all bytes before the comma that ends the member before.
std::string manifest_text(const Manifest& manifest);

/// Whether the text is what somebody wrote: whole, and of its own CRC-32C. @return what is wrong
Defect manifest_damage(std::string_view text);

/// Checks the checksum first, then that everything is there, of its type and in range; nothing in
/// the text is believed before. @return what is wrong
Defect parse_manifest(std::string_view text, Manifest& manifest);

/// Step and numbers: what a run computes on with, besides the tensors.
void add_state(Fingerprint& fingerprint, std::int64_t step, const CheckpointScalars& scalars);

/// The identity of a state (docs/checkpoint-format.md, section 5), from the digests of its tensors.
/// @param index  with its scalars; tensors by id
std::string state_identity(std::int64_t step, const Index& index);

/// Where a manifest names another identity or model than its index makes.
std::vector<std::string> identity_damage(const Manifest& manifest, const Index& index);

}  // namespace fourfold::io
