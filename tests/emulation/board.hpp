// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory that the ranks of one emulated NCCL communicator share: processes of one machine.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace fourfold::emulated {

/// Bytes on their way from one rank to another, in order.
struct Mailbox {
  static constexpr std::size_t room = 64 * 1024;
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> read;
  std::array<std::byte, room> bytes;

  /// Both do what can be done now. @return the bytes that were moved
  std::size_t put(const std::byte* data, std::size_t size);
  std::size_t take(std::byte* data, std::size_t size);
};

/// What a rank tells the others of a split.
struct SplitWord {
  std::atomic<std::uint64_t> serial;  ///< from 1: written last
  int color;
  int key;
};

struct RankWords {
  std::atomic<pid_t> process;  ///< 0: not here yet
  /// By serial modulo 2: nobody is two splits ahead of another.
  std::array<SplitWord, 2> splits;
};

class Board {
 public:
  /// Made by whoever comes first. @param name  the same on all its ranks, and no other board's
  Board(const std::string& name, int ranks, int rank);
  ~Board();
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int ranks() const noexcept { return ranks_; }
  bool all_are_here();
  /// Whether the process of some rank is gone.
  bool is_someone_gone() const;
  RankWords& words(int rank) const noexcept { return words_[rank]; }
  Mailbox& mailbox(int from, int to) const noexcept { return boxes_[from * ranks_ + to]; }

 private:
  std::string name_;
  int ranks_;
  std::size_t bytes_;
  void* memory_ = nullptr;
  RankWords* words_ = nullptr;
  Mailbox* boxes_ = nullptr;
  bool has_name_ = true;
};

}  // namespace fourfold::emulated
