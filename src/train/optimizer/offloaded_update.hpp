// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/io/tile_stream.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/train/state_tier.hpp>
#include <fourfold/train/update_rule.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace fourfold::train {

/// Updates parameters whose state is not in device memory: tile by tile, gradients come to the
/// host, which updates masters and moments where they lie (or, from a file, in a buffer that they
/// pass through), and new weights go back. The copies of the next tile and of the last one go on
/// beside the update of a tile.
class OffloadedUpdate {
 public:
  /// What the host does with a tile, of whose weight all is to be written.
  using Work = std::function<void(const Elements& tile)>;
  struct Update {
    std::function<void(const Elements& tile, const float* gradient_scale)> update;
    Work keep;  ///< where gradients overflowed: the weight from the master, as it was
  };

  /// Everything is borrowed.
  /// @param states  of each run of the share
  /// @param order   the segments with runs that every step updates here, in its order
  OffloadedUpdate(StateTier& tier, double buffer_mb, const parallel::ParameterShard& share,
                  std::vector<States> states, std::span<const std::size_t> order);

  /// A step begins: the first tiles may come from the disk beside it.
  void begin_step();
  /// Runs `work` over the tiles of a run; `stream` waits for the weights. All runs in the order
  /// told make a step. The work may run later than this returns.
  /// @param gradient_scale  device scalar, or nullptr
  void update(const parallel::ParameterShard::Run& run, const float* gradient_scale,
              const Update& work, device::StreamRef stream);
  /// Every weight of a run from its master, which `round` does. `stream` waits for them. @pre
  /// synchronized, or the run is none of `order`
  void weights_from_masters(const parallel::ParameterShard::Run& run, const Work& round,
                            device::StreamRef stream);
  /// Brings all state to where its views show it. Blocks the host; between steps.
  void synchronize();

 private:
  /// Memory that tiles take turns with, so that copying and updating overlap.
  struct Staging {
    TensorView gradient;
    TensorView weight;
    device::Event arrived;  ///< the gradient
    device::Event updated;  ///< the weight
    device::Event sent;     ///< the weight, to the device
  };
  Staging& next_staging() { return staging_[turn_++ % staging_.size()]; }
  const States& states_of(const parallel::ParameterShard::Run& run) const;
  Elements tile_of(const parallel::ParameterShard::Run& run, Range part,
                   const Staging& staging) const;
  void send_weight(const parallel::ParameterShard::Run& run, Range part, Staging& staging);
  void run_tile(Elements tile, const float* gradient_scale, const Update& work);
  void open_stream(std::span<const std::size_t> order);
  /// Calls body(part) for parts of a run that fit a tile; elements of the run.
  template <class Body>
  void for_each_part(const parallel::ParameterShard::Run& run, const Body& body) const;

  StateTier* tier_;
  const parallel::ParameterShard* share_;
  std::vector<States> states_;
  std::int64_t tile_elements_;
  std::array<Staging, 2> staging_;
  TensorView gradient_scale_;  ///< on the host
  std::size_t turn_ = 0;
  device::Stream to_host_;
  device::Stream host_;
  device::Stream to_device_;
  device::Event produced_;
  TensorView buffer_;  ///< of the tile stream
  std::unique_ptr<io::TileStream> tiles_;
};

}  // namespace fourfold::train
