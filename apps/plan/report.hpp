// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <fourfold/parallel/schedule.hpp>
#include <fourfold/parallel/timeline.hpp>

#include <string>

namespace fourfold::plan_program {

/// What `fourfold plan` prints.
std::string report(const Arguments& arguments, const parallel::Schedule& schedule,
                   const parallel::Timeline& timeline);

/// Title and line below it of the picture.
std::string title(const parallel::Schedule& schedule);
std::string subtitle(const Arguments& arguments, const parallel::Schedule& schedule,
                     const parallel::Timeline& timeline);

}  // namespace fourfold::plan_program
