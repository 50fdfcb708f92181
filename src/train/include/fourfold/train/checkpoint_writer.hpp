// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/background_saver.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/local_tier.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

/// What [checkpoint] says of how steps are written and kept.
/// @param rank_hosts  the name of each rank's node; empty: all are on one
io::StoreOptions store_options(const runfile::CheckpointConfig& config, int ranks,
                               std::span<const std::string> rank_hosts);

/// What it says of steps between them. @pre checkpoint.node_local_dir is set
io::LocalTierOptions local_tier_options(const runfile::CheckpointConfig& config, int ranks,
                                        std::span<const std::string> rank_hosts);

/// What a save saves, made ready when it begins.
/// @param may_arrive  the pieces may be on their way still (io::SaveRequest::has_arrived)
using MakeRequest = std::function<io::SaveRequest(bool may_arrive)>;

/// Saves a run's steps, at once or in the background, as [checkpoint] says. Collective but for
/// what is const; all ranks call it alike.
class CheckpointWriter {
 public:
  /// Told of each step that is on stable storage; longest_s is not filled in.
  using OnCommitted = std::function<void(const telemetry::CheckpointRecord&)>;

  /// @param store    of checkpoint.dir; borrowed, as is the world
  /// @param layouts  of every save; borrowed
  CheckpointWriter(const runfile::CheckpointConfig& config, io::CheckpointStore& store,
                   std::span<const io::TensorLayout> layouts, comm::Communicator& world,
                   OnCommitted on_committed);

  /// Of copies, on this rank, in host memory.
  std::size_t staging_bytes() const noexcept { return staging_bytes_; }

  /// Steps that are being written.
  int saves_under_way() const noexcept { return static_cast<int>(under_way_.size()); }
  /// Whether the step is to be left out because no copy is free for it; says so.
  bool leaves_out(std::int64_t step) const;

  /// Saves, or begins to, once a copy is free and pieces that were on their way have been copied.
  /// `request` is called then, and may make the state ready. @throws as io::CheckpointStore::save
  void save(const MakeRequest& request);
  /// Blocks until no save under way reads the pieces that it was given.
  void wait_until_read() const;
  /// Call it at each step boundary. @throws as io::CheckpointStore::save, of a save that failed
  void poll();
  /// Waits for what is under way.
  void finish();

 private:
  struct UnderWay {
    io::BackgroundSaver* saver = nullptr;
    telemetry::CheckpointRecord step;  ///< what is known of it when it begins
  };

  bool has_free_copy() const noexcept { return under_way_.size() < savers_.size(); }
  io::BackgroundSaver& free_saver();
  void finish_oldest();
  void tell(telemetry::CheckpointRecord step, const io::SaveReport& report) const;

  runfile::BusySave when_busy_;
  io::CheckpointStore& store_;
  comm::Communicator& world_;
  OnCommitted on_committed_;
  std::size_t staging_bytes_ = 0;
  std::vector<std::unique_ptr<io::BackgroundSaver>> savers_;  ///< none: training waits
  /// Oldest first. Only that one goes on at a step boundary, so steps appear in order; the threads
  /// of all write.
  std::deque<UnderWay> under_way_;
};

}  // namespace fourfold::train
