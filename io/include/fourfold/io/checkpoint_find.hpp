// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which checkpoints are there, and which of them hold together: what a run goes on from, and what
/// tools look at. Only reads; of a step its manifest and its index, and no payload.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

namespace fourfold::io {

/// Steps committed in a directory, ascending. Local; reads the directory only. A missing directory
/// has none. @throws UserError (config) when it cannot be read
std::vector<std::int64_t> list_steps(const std::filesystem::path& directory);
/// Their folders, in the same order.
std::vector<std::filesystem::path> step_folders(const std::filesystem::path& directory);
/// The newest of them; -1 when there is none. Collective; rank 0 looks: when another gets to it,
/// the directory may be in the making. @throws on all ranks alike when it cannot be read
std::int64_t newest_step(const std::filesystem::path& directory, comm::Communicator& communicator);

/// The newest step below `before` whose manifest and index hold and whose files have their exact
/// names and sizes. Collective; rank 0 looks and the others learn. LATEST is not consulted. Each
/// newer step that is passed over is named in a warning with the reason.
std::optional<Checkpoint> find_newest_valid(
    const std::filesystem::path& directory, comm::Communicator& communicator,
    std::int64_t before = std::numeric_limits<std::int64_t>::max());

/// Opens one step folder, wherever it is. Collective; rank 0 reads and the others learn.
/// @throws UserError: config when the folder does not exist or holds no checkpoint; data_corrupt
///   naming file and reason when it does not hold together
Checkpoint open_checkpoint(const std::filesystem::path& step_directory,
                           comm::Communicator& communicator);

/// Finds the checkpoint a user names: a step folder, or a folder of steps, of which the newest
/// valid one is taken. Collective. @throws as open_checkpoint
Checkpoint find_checkpoint(const std::filesystem::path& folder, comm::Communicator& communicator);

}  // namespace fourfold::io
