// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fourfold::batch {

/// Why a launcher that has started nothing would not do so the next time either: a plugin that is
/// not there or cannot be loaded, an option that it does not know, an account that is none, a
/// program that nodes do not have or may not run. What may pass by itself, as a node that does not
/// answer, is no such reason.
/// @param errors  its standard error: of Slurm's srun (22.05 to 24.11), or of Hydra's mpiexec
/// @return the line that says so; nothing when there is none
std::optional<std::string> unmendable(std::string_view errors);

}  // namespace fourfold::batch
