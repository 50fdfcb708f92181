// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/scratch_file.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace fourfold::io {

/// Takes the contents of a ScratchFile through memory that has room for a small part of it: tiles
/// are read ahead, worked on and written back, in the same order again and again, while the disk
/// goes on beside the work (asynchronous I/O of the kernel, past the page cache).
///
///   TileStream stream(file, tiles, memory);
///   stream.read_ahead();                                       // may be left out
///   for (...) { std::byte* tile = stream.next(); ...; stream.write_back(); }   // all tiles
///   stream.synchronize();                                           // before the file is read
///   otherwise
class TileStream {
 public:
  /// A run of bytes in the file. Both are multiples of ScratchFile::page_bytes.
  struct Part {
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
  };
  /// What is worked on together; parts lie one after the other in memory.
  using Tile = std::vector<Part>;
  /// Tiles in flight that keep a disk busy: read, worked on, written.
  static constexpr std::size_t usual_slots = 6;
  /// Bytes of memory for `slots` tiles.
  static std::size_t memory_bytes(std::span<const Tile> tiles, std::size_t slots);

  /// @param file    borrowed
  /// @param tiles   of which no two share a page
  /// @param memory  memory_bytes() for at least two slots; borrowed
  /// @throws SystemError (config) when the kernel has no asynchronous I/O to give
  TileStream(const ScratchFile& file, std::vector<Tile> tiles, std::span<std::byte> memory);
  /// Waits for what is in flight.
  ~TileStream();
  TileStream(const TileStream&) = delete;
  TileStream& operator=(const TileStream&) = delete;

  /// Begins to read the first tiles of a round. next() does it too.
  void read_ahead();
  /// The next tile of the round, and after the last the first of the next round. Waits until it is
  /// there; the tile before must have been written back.
  /// @throws SystemError (node_fault) when the disk has failed
  std::byte* next();
  /// Begins to write the tile of next() back.
  void write_back();
  /// Waits until the file has all that was written back, and forgets what was read ahead. Between
  /// rounds only.
  void synchronize();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fourfold::io
