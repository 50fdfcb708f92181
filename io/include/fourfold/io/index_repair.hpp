// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// What shows that rebuilt files are the ones that were saved. A checkpoint's files are a pure
/// function of its state, mesh and texts, so a checksum of what is lost is proof enough.
enum class RepairProof : std::uint8_t {
  not_needed,  ///< nothing was to be rebuilt
  manifest,    ///< MANIFEST.json is intact, and has the CRC-32C of every file
  index,       ///< index.h5 is, byte for byte, what the payloads make
  latest,      ///< LATEST beside the step has its identity and the CRC-32C of its manifest
  none,        ///< the payloads' own checksums hold; nothing shows that they are of one save
};
std::string_view name(RepairProof proof) noexcept;  ///< "manifest"

struct RepairOptions {
  bool dry_run = false;
  bool trust_payloads = false;  ///< go on where there is no other proof
  std::function<void(std::int64_t done_bytes, std::int64_t total_bytes)> progress = {};
};

struct RepairReport {
  std::filesystem::path path;
  std::int64_t step = 0;
  std::string identity;
  std::vector<std::string> damage;   ///< what was wrong, one line for each file
  std::vector<std::string> rebuilt;  ///< files that were put in place, or would be; in that order
  RepairProof proof = RepairProof::not_needed;
  std::int64_t bytes_read = 0;  ///< of payload files
};

/// Makes index.h5, MANIFEST.json or both of a step folder again from its payloads, which describe
/// themselves. All payloads are read whole and checked first; with an intact manifest HDF5 sees
/// none before its CRC holds. The index is put in place first, the manifest last, each by a rename:
/// whenever it ends, the folder can be repaired, and what was good is still there. Holds the lease
/// of the directory while it writes. Local; blocks.
/// @throws UserError with the folder as it was: config when it is no step folder; data_corrupt,
///   naming file and tensor, when a payload is missing or damaged, they are not of one save, or
///   nothing proves what was rebuilt; cannot_write. As DirectoryLease, when a job saves there
RepairReport repair_index(const std::filesystem::path& step_folder,
                          const RepairOptions& options = {});

}  // namespace fourfold::io
