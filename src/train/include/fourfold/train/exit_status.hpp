// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// exit.json: how a run ended, for the batch script. Launchers report a maximum over ranks or a
/// signal; this file says what really happened.
#pragma once

#include <fourfold/base/error.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::train {

struct ExitStatus {
  ExitCode code = ExitCode::finished;
  std::string reason;                  ///< the message the user saw, or "finished"
  std::int64_t step = 0;               ///< completed steps
  std::string checkpoint;              ///< newest good one; empty: none
  std::vector<std::string> bad_nodes;  ///< hosts to leave out next time
  friend bool operator==(const ExitStatus&, const ExitStatus&) = default;
};

/// Whether starting the same run again makes sense without a person looking at it: true for
/// stopped_saved, node_fault and hang.
bool worth_retrying(ExitCode code) noexcept;

/// Writes {"code","reason","step","checkpoint","bad_nodes","retry"} so that readers see the old
/// file or the new one, never a part. Called by one rank: the lowest that lives.
/// @throws UserError (exit code cannot_write)
void write_exit_status(const std::filesystem::path& file, const ExitStatus& status);

/// Nothing when the file is absent or no exit status.
std::optional<ExitStatus> read_exit_status(const std::filesystem::path& file);

}  // namespace fourfold::train
