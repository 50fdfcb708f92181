// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "results.hpp"

#include <span>
#include <string>

namespace fourfold::bench {

/// Bus bandwidth over size (logarithmic) as a picture that stands alone, light or dark as the
/// reader's screen: a line per operation, the MPI library's own dashed in the same colour, every
/// row as a tool tip.
std::string plot_svg(const Setting& setting, std::span<const Row> rows);

}  // namespace fourfold::bench
