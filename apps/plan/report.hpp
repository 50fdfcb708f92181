// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/timeline.hpp>

#include <string>

namespace fourfold::plan_program {

/// What `fourfold plan` prints.
std::string report(const Arguments& arguments, const schedule::Schedule& schedule,
                   const schedule::Timeline& timeline);

/// Title and line below it of the picture.
std::string title(const schedule::Schedule& schedule);
std::string subtitle(const Arguments& arguments, const schedule::Schedule& schedule,
                     const schedule::Timeline& timeline);

}  // namespace fourfold::plan_program
