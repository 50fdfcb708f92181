// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "save/checkpoint_shard_writer.hpp"
#include "step/step_folder.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <cstddef>
#include <cstdint>
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

  /// Bytes that this rank writes.
  std::size_t own_bytes() const noexcept { return share_.own_bytes(); }
  /// CheckpointShardWriter's: whether the pieces have yet to arrive, and waiting for them, on any
  /// thread.
  bool is_arriving() const noexcept { return share_.is_arriving(); }
  bool await_pieces() { return share_.await_pieces(); }
  /// Copies them; the pieces are not read any more. @pre memory for own_bytes()
  void stage(std::byte* memory) { share_.stage(memory); }

  /// Writes this rank's share and brings it to stable storage.
  /// @throws UserError (cannot_write)
  void write() { share_.write(temporary_); }
  /// Lets write(), on another thread, return soon with its work undone. The step is not published.
  void give_up() noexcept { share_.give_up(); }

  /// Compares replicas that have arrived, then tells rank 0 what all have written. Collective.
  void gather(comm::Communicator& communicator) { share_.gather(communicator); }

  /// Commits the step; then LATEST and retention, of which failures are warned of. Rank 0 alone.
  /// @throws UserError (cannot_write)
  void publish();

  std::int64_t step() const noexcept { return share_.job().step; }
  std::filesystem::path folder() const;  ///< of the committed step
  std::int64_t payload_bytes() const { return share_.job().payload_bytes(); }

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
