// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "collectives.hpp"
#include "reduction.hpp"
#include "shared_window.hpp"
#include "transport.hpp"

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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

  Work post(const OperationCall& call) override;
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override;

 private:
  void choose(Algorithm algorithm);
  /// Starts the task that `start` makes for the tag it is given.
  Work launch(const OperationCall& call, std::function<CollectiveTask(int tag)> start);
  Work launch_message(const OperationCall& call);
  /// The task of a collective operation. @param sends, recvs  of its counts
  CollectiveTask task_of_messages(const OperationCall& call, std::span<const Extent> sends,
                                  std::span<const Extent> recvs, int tag);
  /// The same on the window, at its turn.
  CollectiveTask shared_task(const OperationCall& call, std::span<const Extent> sends,
                             std::span<const Extent> recvs, std::uint64_t turn);
  CollectiveTask reduction_task(TensorView data, ReduceOp op, int tag);
  CollectiveTask gather_task(const OperationCall& call, std::span<const Extent> parts, int tag);
  Order order() const noexcept {
    return algorithm() == Algorithm::tree ? Order::pairs : Order::ranks;
  }
  std::string described(const OperationCall& call) const;
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
