// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/train/elastic_mesh.hpp>

#include <cstdint>
#include <optional>

namespace fourfold::job {

/// A variable of the environment; nullptr when it is not set, or empty.
const char* variable(const char* name);

/// A variable that is a number of things; `otherwise` when it is not set, or is none, with a
/// warning that names it.
std::int64_t number_in(const char* name, std::int64_t otherwise);

/// What Slurm has given to this job, from the environment of its batch script; nothing outside of
/// one. Memory is what the job asked for, or all that this node has.
std::optional<train::Allocation> allocation();

}  // namespace fourfold::job
