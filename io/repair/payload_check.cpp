// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"
#include "repair/rebuilt_save.hpp"
#include "sums/file_region.hpp"

#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace fourfold::io {
namespace {

/// One extent, chunk by chunk, against the file's table.
class ExtentCheck {
 public:
  ExtentCheck(const InputFile& file, std::span<const std::uint32_t> table, const OnRead& on_read)
      : file_(file), table_(table), on_read_(on_read) {}

  Defect read(const TensorLayout& layout, const Box& box, const PlacedExtent& place,
              std::uint64_t bytes, WrittenExtent& written) {
    for (std::uint64_t begin = 0; begin < bytes; begin += chunk_bytes) {
      buffer_.resize(std::min(chunk_bytes, bytes - begin));
      const std::uint64_t offset = place.byte_offset + begin;
      if (auto defect = file_.read_at(offset, buffer_)) {
        return defect;
      }
      std::uint32_t crc = 0;
      for (std::uint64_t hot = 0; hot < buffer_.size(); hot += hot_bytes) {
        const auto part = std::span(buffer_).subspan(
            hot, std::min<std::uint64_t>(hot_bytes, buffer_.size() - hot));
        crc = crc32c(part, crc);
        written.digest += digest_of_bytes(layout.dtype, layout.shape, box, begin + hot, part);
      }
      on_read_(std::ssize(buffer_));
      if (crc != table_[place.first_chunk + begin / chunk_bytes]) {
        return fmt::format("is damaged in bytes {} to {} of the file (CRC-32C)", offset,
                           offset + buffer_.size());
      }
      written.crc32c = crc32c_combine(written.crc32c, crc, buffer_.size());
    }
    const auto entries = table_.subspan(place.first_chunk, chunks_of(bytes));
    written.table_crc32c = crc32c(std::as_bytes(entries));
    return std::nullopt;
  }

 private:
  const InputFile& file_;
  std::span<const std::uint32_t> table_;
  const OnRead& on_read_;
  std::vector<std::byte> buffer_;
};

}  // namespace

Defect whole_crc(const InputFile& file, const OnRead& on_read, std::uint32_t& crc) {
  crc = 0;
  std::vector<std::byte> buffer;
  for (std::uint64_t begin = 0; begin < file.size_bytes(); begin += chunk_bytes) {
    buffer.resize(std::min(chunk_bytes, file.size_bytes() - begin));
    if (auto defect = file.read_at(begin, buffer)) {
      return defect;
    }
    crc = crc32c(buffer, crc);
    on_read(std::ssize(buffer));
  }
  return std::nullopt;
}

Defect check_payload(const InputFile& file, const SaveJob& job, const PlannedFile& planned,
                     const OnRead& on_read, WrittenPayload& written) {
  const auto named = [&](const std::string& what) {
    return fmt::format("{} {}", planned.name, what);
  };
  std::uint64_t rest = file.size_bytes();
  for (const std::size_t extent : planned.extents) {
    if (job.bytes_of(extent) > rest) {
      return named("says that it holds more bytes than it has");
    }
    rest -= job.bytes_of(extent);
  }
  const PayloadFrame frame(job, planned);
  if (auto defect = frame.difference(file)) {
    return named(*defect);
  }
  std::vector<std::uint32_t> table(frame.chunks());
  if (auto defect =
          file.read_at(frame.table_entry_offset(0), std::as_writable_bytes(std::span(table)))) {
    return named(*defect);
  }
  ExtentCheck check(file, table, on_read);
  std::vector<WrittenExtent> extents(planned.extents.size());
  for (std::size_t position = 0; position < extents.size(); ++position) {
    const std::size_t extent = planned.extents[position];
    const TensorLayout& layout = job.layout_of(extent);
    if (auto defect = check.read(layout, job.plan.extents[extent].box, frame.place(position),
                                 job.bytes_of(extent), extents[position])) {
      return fmt::format("{}: tensor {} b{} {}", planned.name, layout.id.str(), job.numbers[extent],
                         *defect);
    }
  }
  written = frame.describe(extents);
  return std::nullopt;
}

}  // namespace fourfold::io
