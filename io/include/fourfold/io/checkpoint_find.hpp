// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which checkpoints are there, and which of them hold together: what a run goes on from, and what
/// tools look at. Only reads; of a step its manifest and its index, and no payload.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/step_place.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Where a listed step leads that is a link; nothing: it is a folder. Local.
std::optional<std::string> link_of_step(const std::filesystem::path& directory, std::int64_t step);

/// What looks like a step there and is none, by name. What does not begin like a step's name is not
/// ours, and not among them. Local.
/// @throws as list_steps()
std::vector<PassedOver> passed_over_in(const std::filesystem::path& directory);
/// Names each in a warning. Local.
void warn_of_passed_over(std::span<const PassedOver> entries);

/// For a run that would begin anew, or again at step `after`, because no later step is listed:
/// refuses that where entries have the names of later steps and are none. Where LATEST names a
/// later step that is not there, that is a warning. Collective; rank 0 looks.
/// @throws UserError (data_corrupt) on all ranks alike
void require_no_lost_steps(const std::filesystem::path& directory, std::int64_t after,
                           comm::Communicator& communicator);

/// The newest of list_steps(); -1 when there is none. Collective; rank 0 looks: when another gets
/// to it, the directory may be in the making. @throws on all ranks alike when it cannot be read
std::int64_t newest_step(const std::filesystem::path& directory, comm::Communicator& communicator);

/// The newest step below `before` whose manifest and index hold and whose files have their exact
/// names and sizes. Collective; rank 0 looks and the others learn. Each newer step that is passed
/// over is named in a warning with the reason, and without `before` each entry of passed_over_in(),
/// and the step of LATEST where that is a later one and is not there.
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
