// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right body of stochastic_rounding.hpp: same contract. Tests compare the
/// fast body with it; not for use in a run.
#pragma once

#include <fourfold/kernels/stochastic_rounding.hpp>

namespace fourfold::kernels::reference {

/// Of element `i` of the range.
BFloat16 rounded_stochastically(const StochasticRounding& rounding, std::int64_t i, float value);

void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef stream, Place place = Place::device);

}  // namespace fourfold::kernels::reference
