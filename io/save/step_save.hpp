// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "save/checkpoint_shard_writer.hpp"
#include "step/step_folder.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <filesystem>
#include <functional>
#include <optional>

namespace fourfold::io {

/// One save, from the agreement on it to the committed folder, in phases: what ranks do together
/// takes a communicator, what each does alone may run on another thread meanwhile. Removes what it
/// wrote unless it was published.
class StepSave {
 public:
  /// Agrees on the plan, compares replicas that are there, makes room and the temporary folder.
  /// Collective.
  /// @param store  borrowed, like the layouts and, until write() is over, the pieces of `request`
  /// @throws as CheckpointStore::save
  StepSave(const CheckpointStore& store, const SaveRequest& request,
           comm::Communicator& communicator);

  /// What this rank does of it alone, write() but for the folder; and gather().
  CheckpointShardWriter& share() noexcept { return share_; }
  /// Writes this rank's share and brings it to stable storage.
  /// @throws UserError (cannot_write)
  void write() { share_.write(temporary_); }

  /// Commits the step; then LATEST and retention, of which failures are warned of. Rank 0 alone.
  /// @throws UserError (cannot_write)
  void publish();

  std::filesystem::path folder() const;  ///< of the committed step

 private:
  const CheckpointStore& store_;
  CheckpointShardWriter share_;
  std::optional<TemporaryStep> folder_;  ///< on rank 0
  std::filesystem::path temporary_;
};

/// comm::throw_if_any_failed() on a part of a save that ranks did alone. Who cannot write says that
/// what was saved before is there still. Collective.
void agree_on_save(comm::Communicator& communicator, std::optional<comm::Failure> mine);
/// comm::collective_try() for such a part. Collective, and a barrier.
void write_together(comm::Communicator& communicator, const std::function<void()>& work);
/// comm::run_on_root() for such a part. Collective, and a barrier.
void first_rank_writes(comm::Communicator& communicator, const std::function<void()>& work);

}  // namespace fourfold::io
