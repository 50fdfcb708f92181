// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/background_saver.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace fourfold::train {

/// What [checkpoint] says of how steps are written and kept.
/// @param rank_hosts  the name of each rank's node; empty: all are on one
io::StoreOptions store_options(const runfile::CheckpointConfig& config, int ranks,
                               std::span<const std::string> rank_hosts);

/// A step that is on stable storage.
struct CommittedStep {
  std::int64_t step = 0;
  std::filesystem::path path;
  std::int64_t payload_bytes = 0;
  double blocked_s = 0;    ///< training stood still
  double committed_s = 0;  ///< from the begin of the save on
};

/// Saves a run's steps, at once or in the background, as [checkpoint] says. Collective in all that
/// takes a communicator; all ranks call it alike.
class CheckpointWriter {
 public:
  /// @param store    of checkpoint.dir; borrowed
  /// @param layouts  of every save; borrowed
  CheckpointWriter(const runfile::CheckpointConfig& config, io::CheckpointStore& store,
                   std::span<const io::TensorLayout> layouts, const comm::Communicator& world);

  /// Of copies, on this rank, in host memory.
  std::size_t staging_bytes() const noexcept { return staging_bytes_; }

  /// Whether a step is being written.
  bool is_busy() const noexcept { return saver_ && saver_->is_busy(); }
  /// Whether the step is to be left out because one is being written; says so.
  bool leaves_out(std::int64_t step) const;

  using OnCommitted = std::function<void(const CommittedStep&)>;
  /// Saves, or begins to, once the save that is under way is over. `request` is called then, and
  /// may make the state ready. @throws as io::CheckpointStore::save
  void save(const std::function<io::SaveRequest()>& request, comm::Communicator& world,
            const OnCommitted& on_committed);
  /// Call it at each step boundary. @throws as io::CheckpointStore::save, of a save that failed
  void poll(comm::Communicator& world, const OnCommitted& on_committed);
  /// Waits for what is under way.
  void finish(comm::Communicator& world, const OnCommitted& on_committed);

 private:
  void tell(const std::optional<io::SaveReport>& report, const OnCommitted& on_committed) const;

  runfile::BusySave when_busy_;
  io::CheckpointStore& store_;
  std::size_t staging_bytes_ = 0;
  std::optional<io::BackgroundSaver> saver_;
  std::int64_t step_ = 0;  ///< saved last
  double blocked_s_ = 0;   ///< for it
};

}  // namespace fourfold::train
