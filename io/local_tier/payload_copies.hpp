// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "node_folders.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/fail_together.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fourfold::io {

/// The payload files of one step that lie on the nodes, some on several, and their way into one
/// folder. All ranks make and call it alike and come to the same decisions.
class PayloadCopies {
 public:
  /// Looks which node has which file, by name and size. Collective.
  /// @param manifest  borrowed
  /// @param folder    of the step on this rank's node; may be missing
  PayloadCopies(const Manifest& manifest, std::filesystem::path folder, const NodeMap& nodes,
                comm::Communicator& world);

  /// Files that no node has.
  std::vector<std::string> missing() const;
  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Copies all of them into `target`, synced, each by the rank that has least to copy on a node
  /// that has the file, and checks each byte; where one is damaged, from another node. Collective.
  /// @return of files that are intact nowhere, what is damaged
  /// @throws UserError (cannot_write) about `target`
  std::vector<std::string> copy_all(const std::filesystem::path& target);

 private:
  struct Damage {
    std::size_t file;
    std::string what;
  };
  std::vector<Damage> copy_once(const std::filesystem::path& target,
                                const std::vector<std::size_t>& files);
  std::vector<int> ranks_for(const std::vector<std::size_t>& files) const;
  void look();

  const Manifest& manifest_;
  std::filesystem::path folder_;
  const NodeMap& nodes_;
  comm::Communicator& world_;
  std::uint64_t bytes_ = 0;
  std::vector<std::set<int>> nodes_with_;  ///< of each file
};

/// Copies a payload file and checks it whole on the way. Local. Replaces what is there.
/// @return what is wrong with the original @throws UserError (cannot_write)
Defect copy_payload(const std::filesystem::path& from, const std::filesystem::path& to,
                    const StoredFile& expected);

/// Sends the payload files of each node to the next one, in chunks, and brings them to stable
/// storage there. Payload file K is rank K's. The ranks of a node send one after another where the
/// next node has fewer. What arrives is checked against the CRC that the file's writer worked out
/// from memory. Collective; a rank that fails goes on taking part.
/// @param folder  of the step on this rank's node: read from, and written to
/// @return what went wrong on this rank, to be agreed on
std::optional<comm::Failure> copy_to_partners(const Manifest& manifest,
                                              const std::filesystem::path& folder,
                                              const NodeMap& nodes, comm::Communicator& world);

}  // namespace fourfold::io
