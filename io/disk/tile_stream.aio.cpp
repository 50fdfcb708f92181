// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/tile_stream.hpp>

#include <libaio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

namespace fourfold::io {
namespace {

std::size_t bytes_of(const TileStream::Tile& tile) {
  return std::transform_reduce(tile.begin(), tile.end(), std::size_t{0}, std::plus<>(),
                               [](const TileStream::Part& part) { return part.bytes; });
}

std::size_t largest_tile(std::span<const TileStream::Tile> tiles) {
  std::size_t largest = 0;
  for (const TileStream::Tile& tile : tiles) {
    largest = std::max(largest, bytes_of(tile));
  }
  return largest;
}

/// The part of it from its first whole page on.
std::span<std::byte> aligned(std::span<std::byte> memory) {
  void* begin = memory.data();
  std::size_t rest = memory.size();
  std::align(ScratchFile::page_bytes, 0, begin, rest);
  return memory.last(rest);
}

}  // namespace

struct TileStream::Impl {
  /// Memory of one tile. Tile number i of all rounds is in slot i modulo their number.
  struct Slot {
    std::byte* memory = nullptr;
    std::vector<iocb> requests;  ///< of a tile's parts
    std::size_t in_flight = 0;
    std::uint64_t number = 0;  ///< of the tile that was last read or written here
  };

  Impl(const ScratchFile& file_in, std::vector<Tile> tiles_in, std::span<std::byte> memory);
  ~Impl() { ::io_destroy(context); }

  enum class Transfer : std::uint8_t { read, write };
  void begin(std::uint64_t number, Transfer transfer);
  void wait(Slot& slot);
  void reap(long least);
  bool can_read(std::uint64_t number);
  void read_ahead();
  Slot& slot_of(std::uint64_t number) { return slots[number % slots.size()]; }
  bool anything_in_flight() const {
    return std::ranges::any_of(slots, [](const Slot& slot) { return slot.in_flight > 0; });
  }
  const Tile& tile_of(std::uint64_t number) const { return tiles[number % tiles.size()]; }
  [[noreturn]] void fail(const std::string& what) const;

  const ScratchFile& file;
  std::vector<Tile> tiles;
  std::vector<Slot> slots;
  io_context_t context = nullptr;
  std::uint64_t worked_on = 0;  ///< tiles handed out and written back, over all rounds
  std::uint64_t read = 0;       ///< tiles whose reads have begun
  bool handed_out = false;
};

TileStream::Impl::Impl(const ScratchFile& file_in, std::vector<Tile> tiles_in,
                       std::span<std::byte> memory)
    : file(file_in), tiles(std::move(tiles_in)) {
  const std::size_t tile_bytes = largest_tile(tiles);
  FOURFOLD_EXPECT(tile_bytes > 0);
  const std::span<std::byte> room = aligned(memory);
  slots.resize(room.size() / tile_bytes);
  FOURFOLD_EXPECT(slots.size() >= 2);
  std::size_t most_parts = 0;
  for (const Tile& tile : tiles) {
    most_parts = std::max(most_parts, tile.size());
  }
  for (std::size_t i = 0; i < slots.size(); ++i) {
    slots[i].memory = room.data() + i * tile_bytes;
    slots[i].requests.resize(most_parts);
  }
  if (const int failure = ::io_setup(static_cast<int>(slots.size() * most_parts), &context)) {
    throw SystemError(
        ExitCode::config,
        format_message("{}: no asynchronous I/O (io_setup: {}; EAGAIN means that all of "
                       "fs.aio-max-nr is in use on this node); ask for a higher limit, or keep the "
                       "state in memory with offload.optimizer = \"cpu\"",
                       file.directory().string(), std::strerror(-failure)));
  }
}

void TileStream::Impl::fail(const std::string& what) const {
  throw SystemError(
      ExitCode::node_fault,
      format_message("{}: the optimizer's state is lost ({}); the disk has failed, and "
                     "the last checkpoint is good: resume from it on another node",
                     file.directory().string(), what));
}

void TileStream::Impl::begin(std::uint64_t number, Transfer transfer) {
  Slot& slot = slot_of(number);
  slot.number = number;
  std::byte* memory = slot.memory;
  std::array<iocb*, 1> one{};
  const Tile& tile = tile_of(number);
  for (std::size_t i = 0; i < tile.size(); ++i) {
    const auto prepare = transfer == Transfer::read ? &::io_prep_pread : &::io_prep_pwrite;
    one[0] = &slot.requests[i];
    prepare(one[0], file.descriptor(), memory, tile[i].bytes, tile[i].offset);
    one[0]->data = &slot;
    int submitted = 0;
    while ((submitted = ::io_submit(context, 1, one.data())) == -EINTR ||
           (submitted == -EAGAIN && anything_in_flight())) {
      reap(submitted == -EAGAIN ? 1 : 0);
    }
    if (submitted != 1) {
      fail(format_message("io_submit: {}", std::strerror(-submitted)));
    }
    ++slot.in_flight;
    memory += tile[i].bytes;
  }
}

/// Looks at transfers that have ended, and waits for `least` of them.
void TileStream::Impl::reap(long least) {
  std::array<io_event, 16> events{};
  timespec at_once{};
  int count = 0;
  do {
    count = ::io_getevents(context, least, events.size(), events.data(),
                           least == 0 ? &at_once : nullptr);
  } while (count == -EINTR);
  if (count < 0) {
    fail(format_message("io_getevents: {}", std::strerror(-count)));
  }
  const auto ended = std::span(events).first(count);
  for (const io_event& event : ended) {
    --static_cast<Slot*>(event.data)->in_flight;
  }
  for (const io_event& event : ended) {
    const bool reads = event.obj->aio_lio_opcode == IO_CMD_PREAD;
    const long done = event.res;
    if (done < 0) {
      fail(format_message("{} at byte {}: {}", reads ? "read" : "write", event.obj->u.c.offset,
                          std::strerror(static_cast<int>(-done))));
    }
    if (event.res != event.obj->u.c.nbytes) {
      fail(format_message("{} {} of {} bytes at byte {}", reads ? "read" : "wrote", done,
                          event.obj->u.c.nbytes, event.obj->u.c.offset));
    }
  }
}

void TileStream::Impl::wait(Slot& slot) {
  while (slot.in_flight > 0) {
    reap(1);
  }
}

/// Whether tile `number` can be read: nobody uses its slot, and what the round before made of it is
/// in the file.
bool TileStream::Impl::can_read(std::uint64_t number) {
  const auto busy = [&](std::uint64_t other) {
    return slot_of(other).number == other && slot_of(other).in_flight > 0;
  };
  return slot_of(number).in_flight == 0 && (number < tiles.size() || !busy(number - tiles.size()));
}

/// Begins what can begin without waiting; of the next tile in any case.
void TileStream::Impl::read_ahead() {
  reap(0);
  const std::uint64_t end = worked_on + std::min(slots.size(), tiles.size());
  while (read < end) {
    while (!can_read(read)) {
      if (read > worked_on) {
        return;
      }
      reap(1);
    }
    begin(read++, Transfer::read);
  }
}

std::size_t TileStream::memory_bytes(std::span<const Tile> tiles, std::size_t slots) {
  return largest_tile(tiles) * slots + ScratchFile::page_bytes;
}

TileStream::TileStream(const ScratchFile& file, std::vector<Tile> tiles,
                       std::span<std::byte> memory)
    : impl_(std::make_unique<Impl>(file, std::move(tiles), memory)) {}

TileStream::~TileStream() = default;

void TileStream::read_ahead() {
  impl_->read_ahead();
}

std::byte* TileStream::next() {
  FOURFOLD_EXPECT(!impl_->handed_out);
  impl_->read_ahead();
  Impl::Slot& slot = impl_->slot_of(impl_->worked_on);
  impl_->wait(slot);
  impl_->handed_out = true;
  return slot.memory;
}

void TileStream::write_back() {
  FOURFOLD_EXPECT(impl_->handed_out);
  impl_->handed_out = false;
  impl_->begin(impl_->worked_on, Impl::Transfer::write);
  ++impl_->worked_on;
}

void TileStream::synchronize() {
  FOURFOLD_EXPECT(impl_->worked_on % impl_->tiles.size() == 0);
  for (Impl::Slot& slot : impl_->slots) {
    impl_->wait(slot);
  }
  impl_->read = impl_->worked_on;
}

}  // namespace fourfold::io
