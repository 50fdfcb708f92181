// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"

#include <string>
#include <vector>

namespace fourfold::verify {

/// One line of the table.
struct Verdict {
  std::string mesh;
  train::Tolerances tolerances;
  train::MeshComparison comparison;
};

/// One JSON object; numbers to full precision.
std::string to_json(const Arguments& arguments, const std::vector<double>& reference_losses,
                    const std::vector<Verdict>& verdicts);

}  // namespace fourfold::verify
