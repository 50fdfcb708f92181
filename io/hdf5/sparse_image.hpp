// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>

namespace fourfold::io {

/// The bytes of a file of which little is written yet: pages that were written, zeros elsewhere.
/// HDF5 makes its files in one of these, because it does not survive a full disk; what it made is
/// then written through file.hpp.
class SparseImage {
 public:
  static constexpr std::uint64_t page_bytes = 4096;
  using Page = std::array<std::byte, page_bytes>;

  std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  void set_size_bytes(std::uint64_t bytes) noexcept { size_bytes_ = bytes; }

  /// Does not change the size.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void read(std::uint64_t offset, std::span<std::byte> bytes) const;

  /// Written pages by number, ascending; the last one may go beyond the size.
  const std::map<std::uint64_t, Page>& pages() const noexcept { return pages_; }

 private:
  std::map<std::uint64_t, Page> pages_;
  std::uint64_t size_bytes_ = 0;
};

/// Writes the pages at their places; the rest of the file is not touched.
void write_image(OutputFile& file, const SparseImage& image);

}  // namespace fourfold::io
