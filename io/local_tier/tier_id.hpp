// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The word that ties the node-local steps on the nodes to one checkpoint directory: 16 hexadecimal
/// digits, in its file ".fast-level". Who copies the directory copies the file with it, and the
/// node-local steps stay the original's: the file also names the inode and the time of birth of the
/// directory, which a copy does not have and which every node and every mount sees alike. Local.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

namespace fourfold::io {

/// Empty when there is none. One that nobody can understand, or that came with a copy, is warned of
/// and is none.
/// @throws UserError (config) when it is there and cannot be read: to go on without it would throw
///   away state that is still there
std::string read_tier_id(const std::filesystem::path& checkpoint_directory);
/// @param ask  called last before the file is replaced
/// @throws UserError (cannot_write), and what `ask` throws
void write_tier_id(const std::filesystem::path& checkpoint_directory, const std::string& word,
                   const std::function<void()>& ask);
/// Removes it, if it is there. @param ask  called last before
/// @throws UserError (cannot_write), and what `ask` throws
void remove_tier_id(const std::filesystem::path& checkpoint_directory,
                    const std::function<void()>& ask);

/// Says what other runs have left, or still keep, on this node; nothing where they have not.
/// @param node_local_directory  of the node
/// @param word                  whose folder is not meant; empty: none
void tell_of_other_local_steps(const std::filesystem::path& node_local_directory,
                               const std::string& word);

}  // namespace fourfold::io
