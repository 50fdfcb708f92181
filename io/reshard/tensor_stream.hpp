// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "payload/extent_writer.hpp"
#include "payload/save_job.hpp"
#include "reshard/write_journal.hpp"

#include <fourfold/io/tensor_source.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Writes the extents of tensors that are read from elsewhere, a part of bounded size at a time:
/// a part is read once and dealt out to all extents that it touches, each of which grows front to
/// back. Local.
class TensorStream {
 public:
  /// @param folder, journal  where the files of the job are made
  /// @param part_bytes       the most of a tensor that is held at a time
  TensorStream(const SaveJob& job, const std::filesystem::path& folder, TensorSource& source,
               WriteJournal& journal, std::int64_t part_bytes);

  /// An extent and where it lies.
  struct Target {
    std::size_t extent = 0;  ///< index into the plan
    std::string file;
    std::uint64_t byte_offset = 0;
    std::uint64_t table_offset = 0;  ///< of its first entry of /_crc32c
  };

  /// Writes extents of one tensor. @param on_read  told of the bytes of each part
  /// @throws UserError (cannot_write), and what the source throws
  void write(const TensorLayout& layout, std::span<const Target> targets,
             const std::function<void(std::int64_t bytes)>& on_read);

  /// Brings everything to stable storage and notes it. @return all extents that were written
  std::map<std::size_t, WrittenExtent> finish();

 private:
  std::vector<Box> parts_of(const TensorLayout& layout) const;
  OutputFile& use(const std::string& name);
  void close_files();
  void append(ExtentWriter& writer, const std::string& file, const Box& part, const Box& common,
              std::size_t element_bytes);
  void note_written();

  const SaveJob& job_;
  TensorSource& source_;
  WriteJournal& journal_;
  std::int64_t part_bytes_;
  std::filesystem::path folder_;
  std::map<std::string, OutputFile> files_;  ///< open now; what was written to others is synced
  std::vector<std::byte> part_;
  std::vector<std::byte> runs_;  ///< pieces of a part that follow one another in an extent
  std::map<std::size_t, WrittenExtent> written_;
  std::map<std::size_t, WrittenExtent> unnoted_;
  std::int64_t unnoted_bytes_ = 0;
};

}  // namespace fourfold::io
