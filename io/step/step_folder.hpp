// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A step folder on its way: temporary while it is written, then committed by one rename, later
/// removed by another. Local; one rank does this for all that see the folder.
#pragma once

#include "format/checkpoint_contents.hpp"

#include <fourfold/io/directory_probe.hpp>
#include <fourfold/io/step_place.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// What is missing for a step, in words. A pure function.
std::optional<std::string> lack_of_room(const Room& needed, const Room& free);

/// Throws when the directory is another's by now: a process may stand still at any place, for as
/// long as it takes another to take it for dead and to save there.
using AskLease = std::function<void()>;

/// A folder ".tmp-step-NNNNNNNNN-<word>" in the folder of the lease, where this process has one
/// (disk/work_folder.hpp), else beside the steps; a kept one comes to lie there. Removed on
/// destruction unless committed or kept.
class TemporaryStep {
 public:
  /// A new one, with a random word.
  /// Creates it, and the directory above it where missing.
  /// @throws UserError (cannot_write), also when there is less room than is `needed`
  TemporaryStep(const std::filesystem::path& directory, std::int64_t step, const Room& needed);
  /// One of a known word: what an earlier attempt of the same `word` left is gone on with.
  /// @param is_kept  until it is committed, for a later attempt
  TemporaryStep(const std::filesystem::path& directory, std::int64_t step, const Room& needed,
                std::string_view word, bool is_kept);
  ~TemporaryStep();
  TemporaryStep(const TemporaryStep&) = delete;
  TemporaryStep& operator=(const TemporaryStep&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Writes index and manifest, syncs the folder, gives it its name and syncs the
  /// directory. From the rename on, the step exists. @throws UserError (cannot_write), and what
  /// `ask` throws, which is called last before the rename
  void commit(std::string_view manifest_text, std::string_view index_bytes,
              const AskLease& ask = {});

 private:
  std::filesystem::path directory_;
  std::filesystem::path final_path_;
  std::filesystem::path path_;
  std::filesystem::path kept_path_;  ///< empty: removed if it is not committed
};

/// Puts a file into a step folder, in place of one of that name, whole or not at all. Until then it
/// lies beside the folder, or what it is a link to, under a name that remove_leftovers() knows.
/// @throws UserError (cannot_write), and what `ask` throws, with the folder as it was
void replace_in_step(const std::filesystem::path& folder, std::int64_t step, std::string_view name,
                     std::string_view bytes, const AskLease& ask);

/// What LATEST says when this step is the one saved last.
std::string latest_text(std::int64_t step, std::string_view identity,
                        std::string_view manifest_text);
/// Before a run begins to save there. @throws UserError (config) when somebody's file is called
/// LATEST
void refuse_foreign_latest(const std::filesystem::path& directory);

/// Replaces LATEST. `manifest_text` is what the step's MANIFEST.json holds, byte for byte.
/// @throws UserError (cannot_write), and what `ask` throws, which is called last before the rename
void write_latest(const std::filesystem::path& directory, std::int64_t step,
                  std::string_view identity, std::string_view manifest_text, const AskLease& ask);

/// Renames a damaged step to "damaged-step-NNNNNNNNN-<random>", to make room for a good one.
/// @param looked_at  number_of() the folder that was found damaged: another one stays where it is
/// @throws UserError (cannot_write), and what `ask` throws @return the new path
std::filesystem::path set_aside(const std::filesystem::path& directory, std::int64_t step,
                                std::uint64_t looked_at, const AskLease& ask);

// What list_steps() (step_place.hpp) goes by. Local.

/// The step in "step-000000010"; nothing for other names.
std::optional<std::int64_t> step_of_folder(std::string_view name) noexcept;
/// None when there is no such folder. One that is there but cannot be read, or a link that leads
/// nowhere, must not pass for empty: a run would silently start anew. @throws UserError (config)
std::vector<std::string> names_or_none(const std::filesystem::path& directory);

}  // namespace fourfold::io
