// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "examination.hpp"

#include <string>

namespace fourfold::doctor {

/// The table, what was found, and the line for sbatch.
std::string report(const Examination& examination);

/// All of it for programs (docs/doctor.md has the keys).
std::string to_json(const Examination& examination);

}  // namespace fourfold::doctor
