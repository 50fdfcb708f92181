// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "load/extent_reader.hpp"

#include "checksum/file_region.hpp"

#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold::io {

Defect crc_of_part(const InputFile& file, std::uint64_t byte_offset, std::uint64_t bytes,
                   const OnRead& on_read, std::uint32_t& crc) {
  crc = 0;
  std::vector<std::byte> memory(std::min(hot_bytes, bytes));
  for (std::uint64_t done = 0; done < bytes; done += hot_bytes) {
    const auto piece = std::span(memory).first(std::min(hot_bytes, bytes - done));
    if (Defect defect = file.read_at(byte_offset + done, piece)) {
      return defect;
    }
    crc = crc32c(piece, crc);
    on_read(std::ssize(piece));
  }
  return std::nullopt;
}

ExtentReader::ExtentReader(const CheckpointContents& contents, DoneWith done_with, OnRead on_read)
    : contents_(contents),
      done_with_(std::move(done_with)),
      on_read_(std::move(on_read)),
      open_file_(contents.manifest.files.size()) {}

Defect ExtentReader::use_file(std::size_t file) {
  if (file == open_file_) {
    return std::nullopt;
  }
  open_file_ = contents_.manifest.files.size();
  const StoredFile& expected = contents_.manifest.files[file];
  const CrcTable& table = contents_.index.tables[file];
  const auto named = [&](const std::string& what) {
    return fmt::format("{} {}", expected.name, what);
  };
  if (const Defect defect = file_.open(contents_.path / expected.name)) {
    return named(*defect);
  }
  if (file_.size_bytes() != expected.bytes) {
    return named(fmt::format("has {} bytes instead of {}", file_.size_bytes(), expected.bytes));
  }
  table_.resize(table.chunks);
  const auto bytes = std::as_writable_bytes(std::span(table_));
  if (const Defect defect = file_.read_at(table.byte_offset, bytes)) {
    return named(*defect);
  }
  if (crc32c(bytes) != expected.table_crc32c) {
    return named("has a damaged CRC table, or is the payload of another checkpoint");
  }
  open_file_ = file;
  return std::nullopt;
}

void ExtentReader::count(std::int64_t bytes) {
  bytes_read_ += bytes;
  if (on_read_) {
    on_read_(bytes);
  }
}

std::string ExtentReader::described(const StoredExtent& extent, const std::string& what) const {
  return fmt::format("{}: tensor {} b{} {}", contents_.manifest.files[extent.file].name,
                     contents_.index.tensors[extent.tensor].id.str(), extent.number, what);
}

void ExtentReader::open_chunk(const StoredExtent& extent, std::uint64_t byte) {
  next_byte_ = byte / chunk_bytes * chunk_bytes;
  chunk_end_ = std::min(next_byte_ + chunk_bytes, extent.bytes);
  chunk_crc_ = 0;
}

Defect ExtentReader::read_next(const StoredExtent& extent, std::span<std::byte> bytes) {
  if (const Defect defect = file_.read_at(extent.byte_offset + next_byte_, bytes)) {
    return described(extent, *defect);
  }
  chunk_crc_ = crc32c(bytes, chunk_crc_);
  next_byte_ += bytes.size();
  count(std::ssize(bytes));
  return std::nullopt;
}

Defect ExtentReader::read_piece(const StoredExtent& extent) {
  memory_.resize(hot_bytes);
  const auto piece = std::span(memory_).first(std::min(hot_bytes, chunk_end_ - next_byte_));
  piece_ = piece;
  return read_next(extent, piece);
}

Defect ExtentReader::close_chunk(const StoredExtent& extent) {
  while (next_byte_ < chunk_end_) {
    if (Defect defect = read_piece(extent)) {
      return defect;
    }
  }
  const std::uint64_t number = chunk_end_ == 0 ? 0 : (chunk_end_ - 1) / chunk_bytes;
  if (chunk_crc_ != table_[extent.first_chunk + number]) {
    return described(extent, fmt::format("is damaged in bytes {} to {} of the file (CRC-32C)",
                                         extent.byte_offset + number * chunk_bytes,
                                         extent.byte_offset + chunk_end_));
  }
  return std::nullopt;
}

/// Runs ascend in the extent, so each chunk is gone through once, piece by piece: what a run covers
/// whole is read to where it belongs, and the rest by way of memory that stays in the core's cache.
Defect ExtentReader::copy(const StoredExtent& extent, const Box& part, const Box& target_box,
                          std::byte* target) {
  if (Defect defect = use_file(extent.file)) {
    return defect;
  }
  const std::uint64_t element_bytes = size_in_bytes(contents_.index.tensors[extent.tensor].dtype);
  bool has_chunk = false;
  Defect defect;
  for_each_run(extent.box, target_box, part, [&](const Run& run) {
    std::uint64_t begin = run.source_element * element_bytes;
    const std::uint64_t end = begin + run.elements * element_bytes;
    std::byte* to = target + run.target_element * element_bytes;
    while (begin < end && !defect) {
      if (!has_chunk || begin >= chunk_end_) {
        defect = has_chunk ? close_chunk(extent) : std::nullopt;
        open_chunk(extent, begin);
        has_chunk = true;
        continue;
      }
      std::uint64_t count = 0;
      if (begin < next_byte_) {
        count = std::min(end, next_byte_) - begin;
        const auto from = piece_.last(next_byte_ - begin).first(count);
        std::ranges::copy(from, to);
      } else if (const std::uint64_t piece = std::min(hot_bytes, chunk_end_ - begin);
                 begin == next_byte_ && end - begin >= piece) {
        count = piece;
        defect = read_next(extent, {to, count});
      } else {
        defect = read_piece(extent);
        continue;
      }
      if (done_with_) {
        done_with_(to, count);
      }
      begin += count;
      to += count;
    }
  });
  return defect || !has_chunk ? defect : close_chunk(extent);
}

Defect ExtentReader::copy_box(std::size_t tensor, const Box& box, std::byte* target) {
  for (std::size_t i = contents_.first_extent[tensor]; i < contents_.first_extent[tensor + 1];
       ++i) {
    const StoredExtent& extent = contents_.index.extents[i];
    const auto part = box.empty() ? std::nullopt : intersect(extent.box, box);
    if (Defect defect = part ? copy(extent, *part, box, target) : std::nullopt) {
      return defect;
    }
  }
  return std::nullopt;
}

Defect ExtentReader::sum(const StoredExtent& extent, Digest& digest, std::uint32_t& crc) {
  if (Defect defect = use_file(extent.file)) {
    return defect;
  }
  const StoredTensor& tensor = contents_.index.tensors[extent.tensor];
  digest = {};
  crc = 0;
  for (std::uint64_t begin = 0; begin < extent.bytes; begin += chunk_bytes) {
    open_chunk(extent, begin);
    while (next_byte_ < chunk_end_) {
      const std::uint64_t first = next_byte_;
      if (Defect defect = read_piece(extent)) {
        return defect;
      }
      digest += digest_of_bytes(tensor.dtype, tensor.shape, extent.box, first, piece_);
    }
    if (Defect defect = close_chunk(extent)) {
      return defect;
    }
    crc = crc32c_combine(crc, chunk_crc_, chunk_end_ - begin);
  }
  return std::nullopt;
}

Defect ExtentReader::check(const StoredExtent& extent, std::uint32_t& crc) {
  Digest digest;
  if (Defect defect = sum(extent, digest, crc)) {
    return defect;
  }
  return digest == extent.digest ? Defect()
                                 : described(extent, "has another digest than the index says");
}

Defect ExtentReader::crc_of(std::size_t file, std::uint64_t byte_offset, std::uint64_t bytes,
                            std::uint32_t& crc) {
  Defect defect = use_file(file);
  if (!defect) {
    defect = crc_of_part(
        file_, byte_offset, bytes, [this](std::int64_t read) { count(read); }, crc);
    if (defect) {
      *defect = fmt::format("{} {}", contents_.manifest.files[file].name, *defect);
    }
  }
  return defect;
}

}  // namespace fourfold::io
