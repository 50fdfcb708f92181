// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checksum/file_region.hpp"
#include "disk/file.hpp"
#include "hdf5/sparse_image.hpp"
#include "payload/extent_writer.hpp"
#include "payload/save_job.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::io {

/// Everything of a payload file but its tensors' bytes and their checksums: HDF5's metadata, and
/// where each extent lies. A pure function of the job, so all that write into one file work it out
/// alike and need not wait for one another.
class PayloadFrame {
 public:
  PayloadFrame(const SaveJob& job, const PlannedFile& file);

  /// Gives the file its size and HDF5's metadata. Touches no byte of the payload: others may have
  /// written theirs already.
  /// @throws UserError (cannot_write)
  void write(OutputFile& file) const;

  /// Whether a file has this size and, apart from tensors and checksums, these bytes.
  /// @return what differs
  Defect difference(const InputFile& file) const;

  /// By position in the file; as SaveJob::stored() has it, with its place.
  const StoredExtent& extent(std::size_t position) const { return extents_[position]; }
  const CrcTable& table() const noexcept { return table_; }
  /// Where an entry of /_crc32c lies.
  std::uint64_t table_entry_offset(std::uint64_t chunk) const noexcept {
    return table_.byte_offset + chunk * sizeof(std::uint32_t);
  }

  /// The whole file, once all of it is written. @param written  of all extents, by position
  WrittenPayload describe(std::span<const WrittenExtent> written) const;

 private:
  /// Extents by position, then the table; without CRCs.
  std::vector<FileRegion> payload_regions() const;
  /// HDF5's metadata, or padding.
  std::vector<std::byte> bytes_in(const FileRegion& gap) const;

  std::vector<StoredExtent> extents_;
  CrcTable table_;
  SparseImage image_;  ///< HDF5's metadata, and where the file ends
};

}  // namespace fourfold::io
