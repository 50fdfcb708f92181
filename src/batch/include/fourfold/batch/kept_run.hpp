// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a chain of batch jobs was begun with: the run file and the small files that it names, as
/// they were then, in `log.dir/submitted/NAME`. All starts of the chain read them there, so that
/// whoever goes on writing in their run file changes their next run and not this one.
///
///     run.toml           the run file, byte for byte
///     KEY/FILE           what it names: "mesh.schedule/order.csv"
///     kept.json          where they come from
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::batch {

struct KeptRun {
  struct File {
    std::string key;               ///< of the run file that names it; empty: the run file itself
    std::string value;             ///< as that names it
    std::filesystem::path origin;  ///< absolute
    std::filesystem::path copy;
  };
  std::filesystem::path folder;
  std::string name;         ///< of the submission or chain: of several folders, the same
  std::vector<File> files;  ///< first the run file; of each key first what the key takes

  std::filesystem::path run_file() const { return files.front().copy; }
  /// For --set, after all others: the run file, or one of those, names the user's files.
  /// @param typed  those of the command line: of a key that they give another value nothing is said
  std::vector<std::string> overrides(std::span<const std::string> typed = {}) const;
  /// The user's files that are not what they were, or are gone; small ones, so they are compared.
  std::vector<std::filesystem::path> changed_origins() const;
};

/// Why no copy of a run file could stand in for it at later starts: its name is none that a line of
/// text or a record can hold, or it is the run's own config.toml. Nothing where one can.
std::optional<std::string> why_not_kept(const std::filesystem::path& log_dir,
                                        const std::filesystem::path& run_file);

/// Keeps a run. The folder appears whole or not at all; `submitted` is a folder, and no link to
/// one.
/// @param submitted  RunFiles::submitted(); made where it is missing
/// @param name       of the folder there, when nothing has it yet; else with -2, -3, ... after it
/// @param run_file   the user's
/// @param text       runfile::run_file_text() before the run file was read and found right
/// @throws UserError: config when the run file is another by now, or something else is called
///   `submitted`; cannot_write
KeptRun keep_run(const std::filesystem::path& submitted, const std::string& name,
                 const std::filesystem::path& run_file, const std::string& text,
                 std::span<const runfile::RunInput> inputs);

/// The run that is kept where this run file lies, in submitted/NAME; nothing when it is no kept
/// one.
/// @throws UserError (data_corrupt) when kept.json is damaged, or names what does not lie there
std::optional<KeptRun> kept_run_of(const std::filesystem::path& run_file);

/// The newest that keep_run() has made under this name of this run file; nothing when there is
/// none. @throws as kept_run_of, for those of this name
std::optional<KeptRun> kept_run_named(const std::filesystem::path& submitted,
                                      const std::string& name,
                                      const std::filesystem::path& run_file);

/// Removes what keep_run() has made, and the folder of all of them if it was the only one. What a
/// user has put there stays, and so does what cannot be removed.
void forget(const KeptRun& kept);

}  // namespace fourfold::batch
