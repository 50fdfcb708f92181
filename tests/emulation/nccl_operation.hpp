// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the ranks of an emulated NCCL communicator do together, as the work of a stream.
#pragma once

#include "board.hpp"

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::emulated {

/// A rank's communicator. Lives as long as work that needs it.
struct NcclRank {
  std::string name;
  int rank = 0;
  int ranks = 1;
  std::unique_ptr<Board> board;
  std::atomic<ncclResult_t> error{ncclSuccess};
  std::atomic<bool> is_aborted{false};
  std::uint64_t enqueued = 0;           ///< operations
  std::atomic<std::uint64_t> done = 0;  ///< of these: they go one after the other
  std::uint64_t splits = 0;
};

std::size_t size_of(ncclDataType_t type);

/// One operation, or several of a group, of one communicator.
class NcclOperation {
 public:
  explicit NcclOperation(std::shared_ptr<NcclRank> rank);

  /// Whether the buffers of the next call are. Who mixes them with others' that are not gets
  /// anything from the real one, and ends the process here.
  void have_registered(bool are_registered) { are_registered_ = are_registered; }

  void all_reduce(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                  ncclRedOp_t op);
  void reduce_scatter(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                      ncclRedOp_t op);
  void reduce(const void* send, void* recv, std::size_t count, ncclDataType_t type, ncclRedOp_t op,
              int root);
  void all_gather(const void* send, void* recv, std::size_t bytes);
  void broadcast(const void* send, void* recv, std::size_t bytes, int root);
  void send(const void* data, std::size_t bytes, int peer);
  void recv(void* data, std::size_t bytes, int peer);

  /// Does what can be done now. Whether it is over: also when the communicator was aborted. A send
  /// is over when it was received.
  bool advance();

 private:
  struct Transfer {
    int peer = 0;
    bool sends = false;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    std::size_t moved = 0;
  };
  /// The length goes ahead, and whether the buffer is registered: where the two sides are not
  /// alike the process ends.
  void add(int peer, bool sends, const void* data, std::size_t bytes);
  /// Reduces own and others' values into `recv` in the end. @return where the others' go, by rank
  std::vector<std::byte*> reduce_at_end(const std::byte* own, void* recv, std::size_t count,
                                        ncclDataType_t type, ncclRedOp_t op);
  bool move_all();
  bool are_sends_received() const;
  void look_for_the_gone();

  std::shared_ptr<NcclRank> rank_;
  std::uint64_t turn_;
  bool are_registered_ = false;
  std::vector<Transfer> transfers_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> scratch_;
  std::vector<std::unique_ptr<std::uint64_t[]>> lengths_;
  std::vector<std::function<void()>> at_end_;
  std::uint64_t times_ = 0;
};

}  // namespace fourfold::emulated
