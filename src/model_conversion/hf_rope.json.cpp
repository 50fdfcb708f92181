// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "config_members.json.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace fourfold::model_conversion {
namespace {

const char* type_key(const Members& rope) {
  return rope.find("rope_type") != nullptr ? "rope_type" : "type";
}

/// What one object says of rotary positions, "rope_parameters" of transformers 5 or "rope_scaling"
/// of 4: their type.
std::string type_in(const Members& rope) {
  if (const std::string key = rope.nested(); !key.empty()) {
    rope.not_computed(key, "the same rotary positions in all layers");
  }
  if (rope.find("rope_type") != nullptr && rope.find("type") != nullptr &&
      rope.text("rope_type", "") != rope.text("type", "")) {
    rope.contradict("rope_type", rope.stated("type"));
  }
  return rope.text(type_key(rope), "default");
}

/// @param context  of the model, which is the original one where nothing else is said
model::RopeScaling scaling_in(const Members& rope, const std::string& type, std::int64_t context) {
  if (rope.number("partial_rotary_factor", 1) != 1) {
    rope.not_computed("partial_rotary_factor", "rotary positions of whole heads");
  }
  if (type == "default") {
    return {};
  }
  if (type != "linear" && type != "llama3") {
    rope.not_computed(type_key(rope), "default, linear and llama3");
  }
  model::RopeScaling result;
  result.kind = model::RopeScaling::Kind::linear;
  result.factor = rope.number("factor");
  if (type == "llama3") {
    result.kind = model::RopeScaling::Kind::by_wavelength;
    result.low_freq_factor = rope.number("low_freq_factor");
    result.high_freq_factor = rope.number("high_freq_factor");
    result.original_context =
        rope.optional_size("original_max_position_embeddings").value_or(context);
  }
  return result;
}

/// The base of the frequencies, which may stand in three places.
double read_rope_theta(const Members& members, double otherwise) {
  std::optional<double> theta;
  std::string first;
  for (const char* const name : {"", "rope_parameters", "rope_scaling"}) {
    const std::optional<Members> where =
        *name == '\0' ? std::optional(members) : members.object(name);
    if (!where || where->find("rope_theta") == nullptr) {
      continue;
    }
    const double found = where->number("rope_theta");
    if (theta && found != *theta) {
      where->contradict("rope_theta", first);
    }
    const std::string stated = where->stated("rope_theta");
    first = *name == '\0' ? stated : fmt::format("{} in {}", stated, name);
    theta = found;
  }
  return theta.value_or(otherwise);
}

}  // namespace

void read_rope(const Members& members, double default_theta, model::Architecture& config) {
  config.positions.rope_theta = read_rope_theta(members, default_theta);
  if (members.number("partial_rotary_factor", 1) != 1) {
    members.not_computed("partial_rotary_factor", "rotary positions of whole heads");
  }
  const std::optional<Members> parameters = members.object("rope_parameters");
  const std::optional<Members> scaling = members.object("rope_scaling");
  if (!parameters && !scaling) {
    return;
  }
  const Members& rope = parameters ? *parameters : *scaling;
  const Members& other = scaling ? *scaling : *parameters;
  const std::string type = type_in(rope);
  const auto contradict = [&] {
    members.contradict("rope_scaling", members.stated("rope_parameters"));
  };
  if (type_in(other) != type) {
    contradict();
  }
  config.positions.rope_scaling = scaling_in(rope, type, config.context);
  if (config.positions.rope_scaling != scaling_in(other, type, config.context)) {
    contradict();
  }
  const auto outside = members.optional_size("original_max_position_embeddings");
  if (outside && config.positions.rope_scaling.kind == model::RopeScaling::Kind::by_wavelength) {
    const bool is_said_twice =
        (parameters && parameters->find("original_max_position_embeddings")) ||
        (scaling && scaling->find("original_max_position_embeddings"));
    if (is_said_twice && *outside != config.positions.rope_scaling.original_context) {
      members.contradict("original_max_position_embeddings",
                         members.stated(parameters ? "rope_parameters" : "rope_scaling"));
    }
    config.positions.rope_scaling.original_context = *outside;
  }
}

}  // namespace fourfold::model_conversion
