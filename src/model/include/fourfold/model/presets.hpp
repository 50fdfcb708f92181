// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Named models: families, which are traits without sizes, and published shapes.
#pragma once

#include <fourfold/base/enum_name.hpp>
#include <fourfold/model/architecture.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::model {

/// gpt2: layer_norm, learned positions, biases everywhere, gelu (Radford et al. 2019).
/// llama: rms_norm, rotary positions, no biases (query/key/value biases on request), swiglu
/// (Touvron et al. 2023).
enum class Family : std::uint8_t { gpt2, llama };
constexpr auto names_of(Family /*any*/) {
  return std::to_array<Named<Family>>({{Family::gpt2, "gpt2"}, {Family::llama, "llama"}});
}

/// As it is published.
constexpr auto names_of(RopeScaling::Kind /*any*/) {
  using enum RopeScaling::Kind;
  return std::to_array<Named<RopeScaling::Kind>>(
      {{none, "none"}, {linear, "linear"}, {by_wavelength, "llama3"}});
}

/// Gives `config` the traits of a family. Its sizes, epsilon, and what else the family leaves open
/// stay.
void set_family(Architecture& config, Family family);
/// The family that has these traits, whatever the sizes. Nothing: none has them.
std::optional<Family> family_of(const Architecture& config);
/// The one with the most of these traits; the first of several.
Family nearest_family(const Architecture& config);
/// For people: "llama", or "like llama" where only the most traits are its.
std::string family_name(const Architecture& config);

/// A published shape by name: "gpt2-124m", "gpt2-350m", "gpt2-774m", "gpt2-1558m", "llama-15m",
/// "llama-2-7b", "llama-3-8b", "llama-3.1-8b", "llama-3.2-1b". Resolved.
/// @throws UserError (exit code config) with the known names and the nearest one
Architecture preset(std::string_view preset_name);
const std::vector<std::string>& preset_names();

}  // namespace fourfold::model
