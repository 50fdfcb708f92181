// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "resume.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/local_tier.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/train/checkpoint_writer.hpp>
#include <fourfold/train/stop_request.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

namespace fourfold::train {

struct RunSavesOptions {
  std::span<const std::string> rank_hosts = {};  ///< the name of each rank's node
  io::DoneWith done_with = {};
  /// This rank's, or nullptr: what is committed is noted there.
  telemetry::MetricsLog* metrics = nullptr;
  /// Of this job. A save of an earlier start that it has no room for counts as a quarter of it.
  double left_s = std::numeric_limits<double>::infinity();
  /// Nothing is to be saved: the directory is not taken.
  bool rehearses = false;
};

/// What a run saves, when and where: checkpoints in checkpoint.dir, at once or in the background,
/// and steps of the node-local tier between them. Collective in all but what is const; all ranks
/// call it alike.
class RunSaves {
 public:
  /// Makes sure that checkpoints can be saved, by this run alone, before what it goes on from is
  /// chosen: who still saves there may be about to add to that. Then it opens the node-local tier.
  /// @param config   borrowed
  /// @param layouts  of every save; borrowed
  RunSaves(const runfile::RunConfig& config, std::span<const io::TensorLayout> layouts,
           comm::Communicator& world, const RunSavesOptions& options);

  /// What the run goes on from, loaded as train::resume() says; a rehearsal looks at no node-local
  /// step.
  /// @param look  ResumeRequest::look
  /// @return nothing when it begins
  std::optional<Resumed> resume(const DataFacts& data, std::span<const io::WantedBox> wanted,
                                std::span<const std::string> allowed_changes,
                                std::function<void(const io::Checkpoint&)> look);
  /// In host memory of this rank, of copies.
  std::size_t staging_bytes() const noexcept { return writer_.staging_bytes(); }
  /// The newest committed step; empty when there is none.
  const std::filesystem::path& newest() const noexcept { return newest_; }

  /// Whether a checkpoint can be saved. @throws as CheckpointStore::check_writable
  void check_writable() { store_.check_writable(*world_); }
  /// Begins the node-local tier anew, or forgets that an earlier start had one.
  /// @param from  the step that is gone on from; 0: the run begins
  void begin(std::int64_t from);

  /// Whether something is to be saved after a step, on either level.
  bool is_due_at(std::int64_t step) const;
  using Request = MakeRequest;
  /// Call it after each step: goes on with what is under way and saves what is due.
  /// @return whether a save was made or began, which may have taken memory
  bool after_step(std::int64_t step, const Request& request);
  /// Saves a step out of turn, unless it is saved already or being written.
  /// @return whether a save was made or began
  bool save_once(std::int64_t step, const Request& request);
  /// Waits for what is under way.
  void finish();
  /// The run is over: no step of the node-local tier is wanted any more.
  void end();

  /// How long saves take, and what is due after `next_step`.
  void add_to(TimesSoFar& times, std::int64_t next_step) const;

 private:
  void open_local_tier(const RunSavesOptions& options);
  void claim_directory();
  bool is_checkpoint_due_at(std::int64_t step) const;
  bool is_node_local_due_at(std::int64_t step) const;
  void save(std::int64_t step, const Request& request);
  void save_node_local(std::int64_t step, const Request& request);
  void note(telemetry::CheckpointRecord committed);

  const runfile::RunConfig* config_;
  comm::Communicator* world_;
  telemetry::MetricsLog* metrics_;
  std::span<const io::TensorLayout> layouts_;
  io::CheckpointStore store_;
  CheckpointWriter writer_;
  std::optional<io::LocalTier> local_tier_;
  bool rehearses_;
  std::filesystem::path newest_;
  std::int64_t last_step_ = -1;  ///< that is saved, or being written
  LongestOfLast<8> save_s_;      ///< until it was on stable storage
  double earlier_save_s_ = 0;    ///< the longest that the start before this one has told
  /// A file system that others share is slow now and then.
  double longest_save_s() const noexcept { return save_s_.value(30, 12); }
  double local_save_s_ = 0;
};

}  // namespace fourfold::train
