// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "board.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace fourfold::emulated {

std::size_t Mailbox::put(const std::byte* data, std::size_t size) {
  const std::uint64_t end = written.load(std::memory_order_relaxed);
  const std::size_t free = room - (end - read.load(std::memory_order_acquire));
  const std::size_t at = end % room;
  const std::size_t moved = std::min({size, free, room - at});
  std::memcpy(bytes.data() + at, data, moved);
  written.store(end + moved, std::memory_order_release);
  return moved;
}

std::size_t Mailbox::take(std::byte* data, std::size_t size) {
  const std::uint64_t begin = read.load(std::memory_order_relaxed);
  const std::size_t here = written.load(std::memory_order_acquire) - begin;
  const std::size_t at = begin % room;
  const std::size_t moved = std::min({size, here, room - at});
  std::memcpy(data, bytes.data() + at, moved);
  read.store(begin + moved, std::memory_order_release);
  return moved;
}

Board::Board(const std::string& name, int ranks, int rank)
    : name_(name),
      ranks_(ranks),
      bytes_(sizeof(RankWords) * static_cast<std::size_t>(ranks) +
             sizeof(Mailbox) * static_cast<std::size_t>(ranks * ranks)) {
  const int file = ::shm_open(name_.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes_)) != 0) {
    std::perror("emulated NCCL: shared memory");
    std::abort();
  }
  memory_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  ::close(file);
  if (memory_ == MAP_FAILED) {
    std::perror("emulated NCCL: mmap");
    std::abort();
  }
  // New memory is zero, which is how all of it begins.
  boxes_ = static_cast<Mailbox*>(memory_);
  words_ = reinterpret_cast<RankWords*>(boxes_ + static_cast<std::ptrdiff_t>(ranks) * ranks);
  words_[rank].process = ::getpid();
}

Board::~Board() {
  ::munmap(memory_, bytes_);
  if (has_name_) {
    ::shm_unlink(name_.c_str());
  }
}

bool Board::all_are_here() {
  const bool all =
      std::all_of(words_, words_ + ranks_, [](const RankWords& its) { return its.process != 0; });
  if (all && has_name_) {
    ::shm_unlink(name_.c_str());
    has_name_ = false;
  }
  return all;
}

bool Board::is_someone_gone() const {
  return std::any_of(words_, words_ + ranks_, [](const RankWords& its) {
    return its.process != 0 && ::kill(its.process, 0) != 0;
  });
}

}  // namespace fourfold::emulated
