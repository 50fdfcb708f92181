// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5/sparse_image.hpp"

#include <algorithm>

namespace fourfold::io {
namespace {

/// Calls `visit(page, offset in the page, offset in the bytes, count)` for each page that
/// [offset, offset + bytes) touches.
template <class Visit>
void for_each_page(std::uint64_t offset, std::uint64_t bytes, const Visit& visit) {
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t within = (offset + done) % SparseImage::page_bytes;
    const std::uint64_t count = std::min(SparseImage::page_bytes - within, bytes - done);
    visit((offset + done) / SparseImage::page_bytes, within, done, count);
    done += count;
  }
}

}  // namespace

void SparseImage::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  for_each_page(
      offset, bytes.size(),
      [&](std::uint64_t page, std::uint64_t within, std::uint64_t done, std::uint64_t count) {
        std::copy_n(bytes.data() + done, count, pages_[page].data() + within);
      });
}

void SparseImage::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  for_each_page(
      offset, bytes.size(),
      [&](std::uint64_t page, std::uint64_t within, std::uint64_t done, std::uint64_t count) {
        if (const auto found = pages_.find(page); found != pages_.end()) {
          std::copy_n(found->second.data() + within, count, bytes.data() + done);
        }
      });
}

void write_image(OutputFile& file, const SparseImage& image) {
  for (const auto& [number, page] : image.pages()) {
    const std::uint64_t offset = number * SparseImage::page_bytes;
    const std::uint64_t bytes = std::min(SparseImage::page_bytes, image.size_bytes() - offset);
    file.write_at(offset, std::span(page).first(bytes));
  }
}

}  // namespace fourfold::io
