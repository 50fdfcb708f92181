// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A checkpoint of any mesh, written by any number of processes (one, on a login node), which hold
/// only a little of it at a time: resharding, merging, importing. What it writes is byte for byte
/// what the ranks of that mesh would have saved.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/save_request.hpp>
#include <fourfold/io/tensor_source.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

namespace fourfold::io {

/// Agrees on all processes.
struct StreamedSave {
  std::int64_t step = 0;
  comm::MeshShape mesh;  ///< whose ranks the holders of `tensors` are
  CheckpointScalars scalars;
  std::span<const TensorLayout> tensors;
  PlanOptions plan = {};
  /// Of the state, where it is known beforehand: what is written is compared with it, bit for bit.
  std::string identity = {};
  /// False: what earlier attempts have left in the folder is removed first, and what one that fails
  /// has written is removed too.
  bool goes_on = true;
  /// The largest part of a tensor that is held at a time, per process; some 24 MiB are needed
  /// beside it.
  std::int64_t part_bytes = std::int64_t{192} << 20;
  /// Told of this process's payload bytes, done and in all, those of an earlier attempt included.
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress = {};
};

/// Writes and commits one step of a folder of steps. Collective; `source` gives every box of every
/// tensor, and is read by one thread of this process. Tensors are shared out among the processes;
/// each is read once, front to back.
/// Rank 0 holds the lease of `directory` meanwhile (directory_lease.hpp).
/// What an attempt that failed or was killed had brought to stable storage stays, in a folder
/// ".tmp-step-...", and is not written again by the same call
/// that goes on.
/// @return also when the step is there already, with the same identity, mesh and files
/// @throws as CheckpointStore::save and DirectoryLease, and what `source` throws, on all processes
/// alike; data_corrupt
///   when identity is known and is not that of what was written
SaveReport save_streamed(const std::filesystem::path& directory, const StreamedSave& request,
                         TensorSource& source, comm::Communicator& communicator);

}  // namespace fourfold::io
