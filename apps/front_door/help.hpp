// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "verbs.hpp"

#include <span>
#include <string>

namespace fourfold::front_door {

/// The manual page of the front door.
std::string help(std::span<const Verb> verbs);

}  // namespace fourfold::front_door
