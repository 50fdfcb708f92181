// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "modules.hpp"
#include "stage_memory.hpp"

#include <fourfold/device/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold::model {

/// Moves what slots keep of blocks between the places in device memory that all slots take in turn
/// and where it lies on the host (StageShape::keeps_on_host), on a stream of its own, beside the
/// computation. Where activations stay on the device, nothing here does anything.
///
/// Whoever computes says so before and after each pass of a block, and always gives the same
/// stream. Two events per place order the two streams: the place was computed on, it was moved. The
/// host only keeps books of what each place holds, which are right because both streams do what is
/// enqueued in the order in which it is.
class ActivationTraffic {
 public:
  ActivationTraffic() = default;  ///< activations stay
  /// @param memory  borrowed
  ActivationTraffic(const StageShape& shape, const StageMemory& memory);

  bool moves() const noexcept { return !blocks_.empty(); }

  /// A forward pass will write a block's activations, and its output.
  void before_forward(std::size_t block, device::StreamRef stream);
  /// @param keep  a backward pass will come: begins to write them back
  void after_forward(int slot, std::size_t block, const MicroBatchContext& pass, bool keep,
                     device::StreamRef stream);
  /// A forward pass inside a group will write activations again, which stay where they are until
  /// the block's backward pass.
  void before_again(std::size_t block, device::StreamRef stream);

  /// Begins to bring what the backward pass of a block reads, unless it is there.
  void ahead_backward(int slot, std::size_t block, const MicroBatchContext& pass);
  /// The backward pass of a block, or of a group that is about to run again, will read and write.
  /// That of the block before is begun to be brought.
  void before_backward(int slot, std::size_t block, const MicroBatchContext& pass,
                       device::StreamRef stream);
  /// @param when  later: begins to write back what the weights' gradients need
  void after_backward(int slot, std::size_t block, const MicroBatchContext& pass,
                      WeightGradients when, device::StreamRef stream);

  /// The same for the second half of a split backward pass, which changes nothing.
  void ahead_weight(int slot, std::size_t block, const MicroBatchContext& pass);
  void before_weight(int slot, std::size_t block, const MicroBatchContext& pass,
                     device::StreamRef stream);
  void after_weight(std::size_t block, device::StreamRef stream);

 private:
  /// Whose memory a place holds, good for which pass.
  struct Content {
    int slot = -1;  ///< -1: nothing that anybody may go on with
    std::size_t block = 0;
    WeightGradients pass = WeightGradients::now;  ///< later: the second half of a backward pass
    friend bool operator==(const Content&, const Content&) = default;
  };
  struct Turn {
    Content content;
    device::Event computed;
    device::Event moved;
  };
  enum class Direction : std::uint8_t { to_host, to_device };

  Turn& block_turn(std::size_t block) { return blocks_[block % blocks_.size()]; }
  /// Of the residual stream in front of `block`; nullptr where that is not in turn.
  Turn* input_turn(std::size_t block);
  static void claim(Turn& turn, device::StreamRef stream);
  void move_piece(Direction direction, const TensorView& on_device, const TensorView& on_host);
  void move_block(Direction direction, int slot, std::size_t block, const MicroBatchContext& pass,
                  const KeptActivations& kinds, bool gradients);
  void move_input(Direction direction, int slot, std::size_t block, const MicroBatchContext& pass);

  const StageMemory* memory_ = nullptr;
  Recompute recompute_;
  std::size_t block_count_ = 0;
  KeptActivations for_backward_;  ///< that a forward pass leaves
  KeptActivations for_weights_;   ///< that the second half of a backward pass reads
  KeptActivations changed_;       ///< of them: what the first half makes or changes
  std::vector<Turn> blocks_;
  std::vector<Turn> inputs_;
  device::Stream stream_;
};

}  // namespace fourfold::model
