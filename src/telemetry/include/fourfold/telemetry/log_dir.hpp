// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/directory_lease.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::telemetry {

/// Makes the directory of a run, log.dir, if it is missing.
/// @throws UserError: cannot_write; config where it lies in a checkpoint, which it would damage
void make_log_dir(const std::filesystem::path& log_dir);

/// Whether a folder has a file that a run leaves in its log.dir. What cannot be looked at has none.
bool holds_run(const std::filesystem::path& folder);

/// Why a folder cannot be looked into; empty: it can.
std::string why_not_readable(const std::filesystem::path& folder);

/// The directory of a run by what a user may call it: that directory itself, its folder of
/// checkpoints, or a step in it. What is none of these comes back as it is.
/// @throws UserError (config) for checkpoints that do not lie in the directory of a run
std::filesystem::path log_dir_named(const std::filesystem::path& named);

/// One start of a run at a time writes into its directory: it holds this lease. Beside that of
/// checkpoint.dir, which another run may share, or which may be the same directory.
inline constexpr std::string_view run_lease_name = ".run-lease";

/// Makes the directory and takes the lease for this process. May wait, and says so. Until it is
/// confirmed, which is due when the run really starts, its end leaves the directory as it was.
/// @param before_overtaking  as io::LeaseOptions has it
/// @throws UserError: config where the directory lies in a checkpoint; as io::DirectoryLease
std::unique_ptr<io::DirectoryLease> take_run_lease(const std::filesystem::path& log_dir,
                                                   std::function<void()> before_overtaking = {});

/// Who holds it, if anybody seems to live who does.
std::optional<io::LeaseHolder> run_lease_holder(const std::filesystem::path& log_dir);

}  // namespace fourfold::telemetry
