// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "activation_traffic.hpp"

#include <fourfold/device/buffer.hpp>

namespace fourfold::model {

ActivationTraffic::ActivationTraffic(const StageShape& shape, const StageMemory& memory)
    : memory_(&memory),
      recompute_(shape.recompute()),
      block_count_(shape.blocks().end - shape.blocks().begin),
      blocks_(memory.block_turns),
      inputs_(memory.input_turns) {
  const bool gated = shape.config.feed_forward.gated;  // its backward pass changes up_NU
  for_backward_ = recompute_.kept(false, gated);
  for_weights_.product_inputs = true;
  for_weights_.up_product = gated;
  changed_.product_inputs = recompute_.kind != Recompute::Kind::none;
  changed_.up_product = gated;
}

ActivationTraffic::Turn* ActivationTraffic::input_turn(std::size_t block) {
  if (block == 0 || block >= block_count_ || recompute_.group_begin(block) != block) {
    return nullptr;
  }
  return &inputs_[(block / recompute_.group_blocks - 1) % inputs_.size()];
}

void ActivationTraffic::claim(Turn& turn, device::StreamRef stream) {
  turn.moved.wait(stream);
  turn.content = {};
}

void ActivationTraffic::before_forward(std::size_t block, device::StreamRef stream) {
  if (!moves()) {
    return;
  }
  claim(block_turn(block), stream);
  if (Turn* const output = input_turn(block + 1)) {
    claim(*output, stream);
  }
}

void ActivationTraffic::after_forward(int slot, std::size_t block, const MicroBatchContext& pass,
                                      bool keep, device::StreamRef stream) {
  if (!moves()) {
    return;
  }
  Turn& mine = block_turn(block);
  Turn* const output = input_turn(block + 1);
  mine.computed.record(stream);
  if (Turn* const input = input_turn(block)) {
    input->computed.record(stream);
  }
  if (output != nullptr) {
    output->computed.record(stream);
  }
  if (!keep) {
    return;
  }
  if (output != nullptr) {
    output->computed.wait(stream_);
    move_input(Direction::to_host, slot, block + 1, pass);
    output->moved.record(stream_);
    output->content = {slot, block + 1};
  }
  mine.computed.wait(stream_);
  move_block(Direction::to_host, slot, block, pass, for_backward_, false);
  mine.moved.record(stream_);
  mine.content = {slot, block};
}

void ActivationTraffic::before_again(std::size_t block, device::StreamRef stream) {
  if (moves()) {
    claim(block_turn(block), stream);
  }
}

void ActivationTraffic::ahead_backward(int slot, std::size_t block, const MicroBatchContext& pass) {
  if (!moves()) {
    return;
  }
  const std::size_t first = recompute_.group_begin(block);
  Turn* const input = input_turn(first);
  if (input != nullptr && input->content != Content{slot, first}) {
    input->computed.wait(stream_);
    move_input(Direction::to_device, slot, first, pass);
    input->moved.record(stream_);
    input->content = {slot, first};
  }
  Turn& mine = block_turn(block);
  if (recompute_.kind != Recompute::Kind::groups && mine.content != Content{slot, block}) {
    mine.computed.wait(stream_);
    move_block(Direction::to_device, slot, block, pass, for_backward_, false);
    mine.moved.record(stream_);
    mine.content = {slot, block};
  }
}

void ActivationTraffic::before_backward(int slot, std::size_t block, const MicroBatchContext& pass,
                                        device::StreamRef stream) {
  if (!moves()) {
    return;
  }
  ahead_backward(slot, block, pass);
  block_turn(block).moved.wait(stream);
  if (const Turn* const input = input_turn(recompute_.group_begin(block))) {
    input->moved.wait(stream);
  }
  if (block > 0) {
    ahead_backward(slot, block - 1, pass);
  }
}

void ActivationTraffic::after_backward(int slot, std::size_t block, const MicroBatchContext& pass,
                                       WeightGradients when, device::StreamRef stream) {
  if (!moves()) {
    return;
  }
  Turn& mine = block_turn(block);
  mine.computed.record(stream);
  mine.content = {};
  if (Turn* const input = input_turn(block)) {
    input->computed.record(stream);
  }
  if (when == WeightGradients::later) {
    mine.computed.wait(stream_);
    move_block(Direction::to_host, slot, block, pass, changed_, true);
    mine.moved.record(stream_);
    mine.content = {slot, block, when};
  }
}

void ActivationTraffic::ahead_weight(int slot, std::size_t block, const MicroBatchContext& pass) {
  if (!moves()) {
    return;
  }
  Turn& mine = block_turn(block);
  const Content wanted{slot, block, WeightGradients::later};
  if (mine.content != wanted) {
    mine.computed.wait(stream_);
    move_block(Direction::to_device, slot, block, pass, for_weights_, true);
    mine.moved.record(stream_);
    mine.content = wanted;
  }
}

void ActivationTraffic::before_weight(int slot, std::size_t block, const MicroBatchContext& pass,
                                      device::StreamRef stream) {
  if (!moves()) {
    return;
  }
  ahead_weight(slot, block, pass);
  block_turn(block).moved.wait(stream);
  if (block > 0) {
    ahead_weight(slot, block - 1, pass);
  }
}

void ActivationTraffic::after_weight(std::size_t block, device::StreamRef stream) {
  if (moves()) {
    block_turn(block).computed.record(stream);
    block_turn(block).content = {};
  }
}

void ActivationTraffic::move_piece(Direction direction, const TensorView& on_device,
                                   const TensorView& on_host) {
  if (!on_host) {  // shared, or none
    return;
  }
  const bool out = direction == Direction::to_host;
  device::copy((out ? on_host : on_device).data(), (out ? on_device : on_host).data(),
               on_host.bytes(), stream_);
}

void ActivationTraffic::move_block(Direction direction, int slot, std::size_t block,
                                   const MicroBatchContext& pass, const KeptActivations& kinds,
                                   bool gradients) {
  const SlotMemory& mine = memory_->slots[slot];
  const auto move = [&](const TensorView& on_device, const TensorView& on_host) {
    move_piece(direction, on_device, on_host);
  };
  const BlockActivations here = mine.blocks[block].cut(pass);
  const BlockActivations there = mine.host.blocks[block].cut(pass);
  for_each_piece(kinds, here, there, move);
  if (gradients) {
    const ProductGradients here_too = mine.gradients[block].cut(pass);
    const ProductGradients there_too = mine.host.gradients[block].cut(pass);
    for_each_gradient(here_too, there_too, move);
  }
}

void ActivationTraffic::move_input(Direction direction, int slot, std::size_t block,
                                   const MicroBatchContext& pass) {
  const SlotMemory& mine = memory_->slots[slot];
  move_piece(direction, mine.residual_RD[block].rows(0, pass.residual.count),
             mine.host.residual_RD[block].rows(0, pass.residual.count));
}

}  // namespace fourfold::model
