// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/train/elastic_mesh.hpp>

#include <cstdint>
#include <optional>

namespace fourfold::train {

/// A variable of the environment that is a number of things; `otherwise` when it is not set, or is
/// none, with a warning that names it.
std::int64_t number_in(const char* name, std::int64_t otherwise);

/// What Slurm has given to this job, from the environment of its batch script or of a step; nothing
/// outside of one. Memory is what the job asked for, or all that this node has.
std::optional<Allocation> job_allocation();

}  // namespace fourfold::train
