// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "reduction.hpp"
#include "shared_window.hpp"
#include "transport.hpp"

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace fourfold::comm {

/// The Communicator of every transport that passes messages (threads, mpi), and may share memory.
class MessageCommunicator : public Communicator {
 public:
  /// Collective over the transport's group; blocks.
  /// @param world_ranks  of its ranks, for the flight recorder
  MessageCommunicator(std::unique_ptr<Transport> transport, std::string name,
                      std::vector<int> world_ranks, Algorithm wanted = Algorithm::automatic);

  int rank() const noexcept override { return transport_->rank(); }
  int size() const noexcept override { return transport_->size(); }
  const std::string& name() const noexcept override { return name_; }
  FlightRecorder* flight_recorder() noexcept override { return &transport_->progress().recorder(); }
  void use(Algorithm algorithm) override { choose(algorithm); }
  Algorithm algorithm() const noexcept override;

  Work all_reduce(TensorView data, ReduceOp op, device::StreamRef stream,
                  std::source_location where) override;
  Work all_gather(ConstTensorView send, TensorView recv, std::span<const std::int64_t> counts,
                  device::StreamRef stream, std::source_location where) override;
  Work reduce_scatter(ConstTensorView send, TensorView recv, std::span<const std::int64_t> counts,
                      ReduceOp op, device::StreamRef stream, std::source_location where) override;
  Work broadcast(TensorView data, int root, device::StreamRef stream,
                 std::source_location where) override;
  Work all_to_all(ConstTensorView send, std::span<const std::int64_t> send_counts, TensorView recv,
                  std::span<const std::int64_t> recv_counts, device::StreamRef stream,
                  std::source_location where) override;
  Work send(ConstTensorView data, int peer, int tag, device::StreamRef stream,
            std::source_location where) override;
  Work recv(TensorView data, int peer, int tag, device::StreamRef stream,
            std::source_location where) override;
  void barrier(std::source_location where) override;
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override;

 private:
  void choose(Algorithm algorithm);
  /// Starts the task that `start` makes for the tag it is given.
  Work launch(const std::string& call, const Call& facts,
              std::function<CollectiveTask(int tag)> start);
  /// Starts the operation that `start` makes for its turn on the window.
  Work launch_shared(const std::string& call, const Call& facts,
                     std::function<CollectiveTask(std::uint64_t turn)> start);
  Work launch_message(const std::string& call, const Call& facts,
                      std::unique_ptr<TransferBatch> batch);
  CollectiveTask reduction_task(TensorView data, ReduceOp op, int tag);
  CollectiveTask gather_machine(ConstTensorView send, TensorView recv,
                                std::span<const std::int64_t> counts, int tag);
  Order order() const noexcept {
    return algorithm() == Algorithm::tree ? Order::pairs : Order::ranks;
  }
  std::string described(const std::string& call) const;
  int user_tags() const noexcept { return transport_->tags() / 2; }

  std::unique_ptr<Transport> transport_;
  std::string name_;
  std::vector<int> world_ranks_;
  std::size_t group_;  ///< of the flight recorder
  Algorithm wanted_ = Algorithm::automatic;
  std::unique_ptr<SharedWindow> window_;  ///< nullptr: messages
  int operations_ = 0;                    ///< of which tags are taken
};

}  // namespace fourfold::comm
