// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/model/architecture.hpp>

#include <vector>

namespace fourfold::model {

/// Rotation speeds of a head's head_dim / 2 feature pairs in radians per position:
/// theta^(-2 i / head_dim), changed as rope_scaling says (llama3: the formula of Llama 3.1).
std::vector<double> rotary_frequencies(const Architecture& config);

/// The table that kernels::rotary reads: row-major [context, head_dim]; row p has the head_dim / 2
/// cosines of p * frequency, then the sines. Computed in double, rounded once.
std::vector<float> rotary_table(const Architecture& config);

}  // namespace fourfold::model
