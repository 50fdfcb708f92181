// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/model/architecture.hpp>

#include <cmath>
#include <iterator>
#include <numbers>

namespace fourfold::model {
namespace {

/// Wavelengths above original_context / low_freq_factor are stretched by factor, those
/// below original_context / high_freq_factor stay, in between both are mixed linearly in
/// original_context / wavelength.
double frequency_by_wavelength(double frequency, const RopeScaling& scaling) {
  const auto context = static_cast<double>(scaling.original_context);
  const double turns = context * frequency / (2 * std::numbers::pi);
  if (turns < scaling.low_freq_factor) {
    return frequency / scaling.factor;
  }
  if (turns > scaling.high_freq_factor) {
    return frequency;
  }
  const double kept =
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - kept) * frequency / scaling.factor + kept * frequency;
}

}  // namespace

std::vector<double> rotary_frequencies(const PositionTraits& positions, std::int64_t head_dim) {
  std::vector<double> frequencies(head_dim / 2);
  for (int i = 0; i < std::ssize(frequencies); ++i) {
    const double exponent = -2.0 * i / static_cast<double>(head_dim);
    double frequency = std::pow(positions.rope_theta, exponent);
    if (positions.rope_scaling.kind == RopeScaling::Kind::linear) {
      frequency /= positions.rope_scaling.factor;
    } else if (positions.rope_scaling.kind == RopeScaling::Kind::by_wavelength) {
      frequency = frequency_by_wavelength(frequency, positions.rope_scaling);
    }
    frequencies[i] = frequency;
  }
  return frequencies;
}

std::vector<float> rotary_table(const PositionTraits& positions, std::int64_t context,
                                std::int64_t head_dim) {
  const std::vector<double> frequencies = rotary_frequencies(positions, head_dim);
  std::vector<float> table;
  table.reserve(context * head_dim);
  for (int position = 0; position < context; ++position) {
    for (const double frequency : frequencies) {
      table.push_back(static_cast<float>(std::cos(position * frequency)));
    }
    for (const double frequency : frequencies) {
      table.push_back(static_cast<float>(std::sin(position * frequency)));
    }
  }
  return table;
}

}  // namespace fourfold::model
