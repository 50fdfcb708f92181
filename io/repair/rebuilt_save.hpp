// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "format/payload_file.hpp"
#include "load/extent_reader.hpp"
#include "payload/save_job.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Puts payloads together to the job that wrote them, as they themselves tell it: what index and
/// manifest are made of, but for what only reading the tensors tells (save_job.hpp, describe). They
/// are of one save as far as they say so themselves (step, mesh, scalars, number of files), none is
/// missing, and tensors are covered once.
/// @param names, payloads  in order of names
/// @param layouts          out: by id, which the job borrows; of boxes only its plan knows
/// @return what is wrong, with the name of the file or tensor
Defect rebuild_save(std::span<const std::string> names,
                    std::span<const PayloadDescription> payloads,
                    std::vector<TensorLayout>& layouts, SaveJob& job);

/// A step folder whose index or manifest may be damaged, as it was found.
struct DamagedStep {
  std::filesystem::path folder;
  std::string manifest_text;         ///< empty when it cannot be read
  std::optional<Manifest> manifest;  ///< when it is intact
  std::string index_bytes;           ///< empty when it cannot be read
  Defect manifest_damage;            ///< with the name of the file
  /// With an intact manifest whatever differs from what it says, else only what cannot be read.
  Defect index_damage;
  std::vector<std::string> payloads;  ///< names of the payload files, in order
};

/// Reads index and manifest, and which payloads are there. Local.
/// @throws UserError: config when it is no folder; data_corrupt when a file is a link, does not
///   belong to a checkpoint or is missing, or the manifest is intact and none that this program
///   knows
DamagedStep look_at_step(const std::filesystem::path& folder);

/// @throws UserError (data_corrupt): "FOLDER: WHAT; nothing was changed"
[[noreturn]] void refuse_repair(const std::filesystem::path& folder, const std::string& what);

/// Reads a payload file of a job whole, each byte once: everything but its tensors must be what the
/// job makes there, byte for byte, and each chunk have the CRC that the file's table says.
/// @param written  out: as if this process had written the file
/// @return what is wrong, with the name of the file and, where it is known, of the tensor
Defect check_payload(const std::filesystem::path& folder, const SaveJob& job,
                     const PlannedFile& planned, const OnRead& on_read, WrittenPayload& written);

}  // namespace fourfold::io
