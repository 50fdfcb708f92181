// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/train/evaluator.hpp>

#include <cstdint>
#include <string>

namespace fourfold::evaluate {

/// What `fourfold evaluate` says.
struct Report {
  std::string checkpoint;
  std::int64_t step = 0;
  train::Evaluation evaluation;
  std::int64_t samples = 0;
  double seconds = 0;
};

/// One JSON object; numbers to full precision.
std::string to_json(const Report& report);

}  // namespace fourfold::evaluate
