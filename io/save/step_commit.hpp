// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/checkpoint_contents.hpp"
#include "payload/save_job.hpp"
#include "step/step_folder.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/retention.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::io {

/// A run that fell back to an older step comes by the damaged one again: it is set aside. An intact
/// step stays. Collective.
/// One that CheckpointStore::was_damaged() is not looked at again.
/// @return whether there is an intact one
/// @throws UserError (cannot_write), also when the lease is lost
bool make_way(const CheckpointStore& store, std::int64_t step, comm::Communicator& communicator);

/// Writes index and manifest and gives the folder its name, unless the same state is there already.
/// Then LATEST and retention: the step is safe already, so what fails there is only warned of.
/// Local.
/// @param ask       of the directory: called before the rename of the step, that of LATEST, and
/// each
///                  removal; when the lease is lost after the first, what follows is left out
/// @param identity  what it is known to be beforehand; empty: not known
/// @throws UserError (cannot_write); data_corrupt when the identity is another
void publish_step(TemporaryStep& folder, const std::filesystem::path& directory, const SaveJob& job,
                  std::span<const WrittenPayload> files, const Retention& retention,
                  const AskLease& ask, std::string_view identity = {});

/// Index and manifest as they go into the folder of a step.
struct SealedStep {
  Manifest manifest;
  std::string index_bytes;
  std::string manifest_text;
};
/// Of what was written. Local. @throws UserError (cannot_write)
SealedStep seal_step(const SaveJob& job, std::span<const WrittenPayload> files);

/// Gives a folder that holds the payloads of a step its index, its manifest and its name; the rest
/// as publish_step(). Local. @pre no such step is there @throws UserError (cannot_write)
void publish_sealed(TemporaryStep& folder, const std::filesystem::path& directory,
                    const SealedStep& sealed, const Retention& retention, const AskLease& ask);

/// Of a step that is there as it is wanted: makes up for what an attempt that ended right after
/// the commit has not come to. Local. @throws UserError (cannot_write)
void complete_step(const std::filesystem::path& directory, std::int64_t step,
                   std::string_view identity, std::string_view manifest_text, const AskLease& ask);

}  // namespace fourfold::io
