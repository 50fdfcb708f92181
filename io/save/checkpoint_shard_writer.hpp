// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "payload/payload_frame.hpp"
#include "payload/save_job.hpp"
#include "save/replicas.hpp"
#include "save/written_exchange.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/save_request.hpp>

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace fourfold::io {

/// What this rank writes of a save, from the agreement on it to the written files, wherever the
/// folder is that they lie in. Makes no folder and removes nothing.
class CheckpointShardWriter {
 public:
  /// Agrees on the plan and compares replicas, unless they have yet to arrive. Collective.
  /// @param directory  that the ranks must mean alike
  /// @param done_with  borrowed, like the layouts and, until write() is over, the pieces of
  ///   `request`
  /// @throws as CheckpointStore::save
  CheckpointShardWriter(const std::filesystem::path& directory, const PlanOptions& plan,
                        const DoneWith& done_with, const SaveRequest& request,
                        comm::Communicator& communicator);

  /// Bytes that this rank writes.
  std::size_t own_bytes() const noexcept { return own_bytes_; }
  /// Whether the pieces have yet to arrive: await_pieces() comes before stage() and write().
  bool is_arriving() const noexcept { return has_arrived_ != nullptr; }
  /// Waits for the pieces, and looks at replicas, which gather() compares. On any thread.
  /// @return false when the share was given up meanwhile
  bool await_pieces();
  /// Copies them; the pieces are not read any more. @pre memory for own_bytes()
  void stage(std::byte* memory);

  /// Writes this rank's share into a folder and brings it to stable storage.
  /// @throws UserError (cannot_write)
  void write(const std::filesystem::path& folder);
  /// Lets write(), on another thread, return soon with its work undone.
  void give_up() noexcept { is_given_up_ = true; }

  /// Compares replicas that have arrived, then tells rank 0 what all have written. Collective.
  /// @throws as CheckpointStore::save
  void gather(comm::Communicator& communicator);
  /// On rank 0, after gather(): all files of the job, in its order.
  std::span<const WrittenPayload> files() const noexcept { return files_; }

  const SaveJob& job() const noexcept { return job_; }

 private:
  struct OwnExtent {
    std::size_t extent;    ///< index into the plan
    std::size_t position;  ///< in the file
    const std::byte* data;
  };
  void find_own(const HeldData& data);

  const DoneWith& done_with_;
  std::function<bool()> has_arrived_;
  SaveJob job_;
  Division division_;
  int rank_;
  std::vector<OwnExtent> own_;  ///< by position; all in one file
  std::size_t own_file_ = 0;
  std::size_t own_bytes_ = 0;
  bool is_staged_ = false;
  std::vector<Replica> replicas_;
  std::atomic<bool> is_given_up_{false};
  std::optional<PayloadFrame> frame_;  ///< of own_file_
  WrittenExtents written_;
  std::vector<WrittenPayload> files_;  ///< on rank 0
};

}  // namespace fourfold::io
