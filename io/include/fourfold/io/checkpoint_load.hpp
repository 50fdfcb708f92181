// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// From a checkpoint into memory, whatever boxes were saved and whichever are wanted.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_plan.hpp>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// A box that this rank wants and where to put it. data is host memory, dense, of the tensor's
/// dtype; shape is the shape of the whole logical tensor as the program has it.
struct WantedBox {
  TensorId id;
  Shape shape;
  Box box;
  TensorView data;
  bool or_zeros = false;  ///< a checkpoint without the tensor fills it with zeros
};

/// When ranks that want the same box share the reading of it: each reads a part from the file
/// system, checks it, and sends it to the others. What is stored is read about once then (chunks
/// at the borders of parts twice), and crosses the network instead. Agrees on all ranks.
struct ReadSharing {
  /// How what is wanted lies on the ranks: each wants the boxes that it holds, and maybe others.
  std::span<const TensorLayout> layouts;
  int from_holders = 0;  ///< so many holders, or more, share; 0: none do
  /// So much at least is a rank's part, if there is as much: fewer ranks read then.
  std::int64_t smallest_part_bytes = std::int64_t{8} << 20;
};

/// What keeps `wanted` from being filled from `checkpoint`: missing tensors (but for or_zeros),
/// other shapes or dtypes, one line each, by name. Local. Tensors of the checkpoint that nobody
/// wants are fine.
std::vector<std::string> differences(const Checkpoint& checkpoint,
                                     std::span<const WantedBox> wanted);

struct LoadReport {
  /// What is damaged, one line each with file, tensor and reason, of all ranks. Empty: all is well.
  std::vector<std::string> damage;
  std::int64_t bytes_read = 0;  ///< by this rank
  bool intact() const noexcept { return damage.empty(); }
};

/// Fills every wanted box, whatever boxes were saved. Collective: the ranks want what they like,
/// and agree on whether all of them got it. Reads only the 4 MiB chunks that the boxes touch and
/// checks the CRC of each; what several ranks want, as `sharing` says. After damage the wanted
/// boxes hold anything.
/// @throws UserError (config) listing differences() when the checkpoint is of another model
LoadReport load(const Checkpoint& checkpoint, std::span<const WantedBox> wanted,
                comm::Communicator& communicator, const DoneWith& done_with = {},
                const ReadSharing& sharing = {});

/// Reads everything, each byte once, shared among the ranks, and checks every checksum and digest,
/// and the manifest's identity and model. Collective. @return what is damaged, one line each; empty
/// when all is well
/// @param on_read  told of bytes of payload files that this rank has read, a chunk at a time
std::vector<std::string> verify(const Checkpoint& checkpoint, comm::Communicator& communicator,
                                const std::function<void(std::int64_t bytes)>& on_read = {});

}  // namespace fourfold::io
