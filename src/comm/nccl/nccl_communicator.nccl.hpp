// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The transport of ranks that have a device each: NCCL. Set-up, votes and text go over the host's
/// communicator of the same ranks.
///
/// Collectives are enqueued on the caller's stream, so whoever wants them beside something else
/// gives them a stream of their own. A message between two ranks blocks the stream that it is on
/// until the other one has come, and NCCL knows no tags: each route has a communicator of its two
/// ranks and a stream of its own, so no message ever waits for another of a different route.
#pragma once

#include "calls.nccl.hpp"
#include "handle.nccl.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>

#include <nccl.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace fourfold::comm {

class NcclCommunicator : public Communicator {
 public:
  /// @param host   of the same ranks
  /// @param world_ranks  of its ranks
  NcclCommunicator(Communicator& host, NcclHandle comm, std::vector<int> world_ranks,
                   std::shared_ptr<NcclCalls> calls);

  int rank() const noexcept override { return host_->rank(); }
  int size() const noexcept override { return host_->size(); }
  const std::string& name() const noexcept override { return host_->name(); }
  FlightRecorder* flight_recorder() noexcept override { return &calls_->recorder(); }
  Communicator& host() noexcept override { return *host_; }
  bool sums_in_rank_order() const noexcept override { return false; }
  /// Of the host's communicators: NCCL chooses for itself.
  void use(Algorithm algorithm) override { host_->use(algorithm); }

  Work post(const OperationCall& call) override;
  void expect_messages(std::span<const MessageRoute> routes) override;
  std::unique_ptr<RegisteredMemory> register_memory(void* data, std::size_t bytes) override;
  bool registers_memory() const noexcept override { return size() > 1; }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override;

 private:
  /// A stream of our own. `ready` is how far the caller's had come at the last operation, and is
  /// recorded again while this stream may still wait for what it was: that was taken by the wait.
  struct Lane {
    device::Stream stream{device::StreamPriority::high};
    device::Event ready;
  };
  /// The way of one route, of which this rank is one end.
  struct Line {
    NcclHandle comm;
    Lane lane;
  };
  /// @param most_ctas  blocks of a device that its operations may take; 0: as NCCL likes
  NcclHandle split_off(int color, int key, const std::string& its_name, int most_ctas);
  Line& line_of(const MessageRoute& route);
  /// @return the stream of `lane`, from here on after the work on `stream`
  static device::StreamRef after(device::StreamRef stream, Lane& lane);
  /// Enqueues it between two marks on `lane`, which is behind the work on the call's stream.
  /// @param what  for errors
  Work launch(const std::string& what, const OperationCall& call, ncclComm_t comm,
              device::StreamRef lane);
  void enqueue(const OperationCall& call, ncclComm_t comm, cudaStream_t on);
  /// Of all_gather and reduce_scatter whose parts are not even, and of all_to_all: part by part.
  void enqueue_parts(const OperationCall& call, ncclComm_t comm, cudaStream_t on);

  std::unique_ptr<Communicator> owned_host_;
  Communicator* host_;
  std::shared_ptr<NcclCalls> calls_;
  NcclHandle comm_;
  std::vector<int> world_ranks_;
  std::size_t group_;  ///< of the flight recorder
  Lane own_lane_;
  std::map<MessageRoute, Line> lines_;  ///< those of this rank
  std::set<MessageRoute> expected_;

  NcclCommunicator(std::unique_ptr<Communicator> host, NcclHandle comm,
                   std::vector<int> world_ranks, std::shared_ptr<NcclCalls> calls);
};

}  // namespace fourfold::comm
