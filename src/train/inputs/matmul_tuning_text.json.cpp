// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>
#include <fourfold/train/matmul_tuning_file.hpp>

#include <nlohmann/json.hpp>

#include <cmath>

namespace fourfold::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* format = "fourfold product choices 1";
constexpr std::size_t most_choices = 100'000;
constexpr std::size_t longest_text = 1'000;

double finite_or_0(double us) {
  return std::isfinite(us) ? us : 0;
}

std::optional<std::string> text_of(const Json& object, const char* key) {
  const auto found = object.find(key);  // of what is no object: its end
  if (found == object.end() || !found->is_string()) {
    return std::nullopt;
  }
  auto text = found->get<std::string>();
  return text.size() <= longest_text ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<double> us_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) {
    return std::nullopt;
  }
  const auto us = found->get<double>();
  return std::isfinite(us) && us >= 0 ? std::optional(us) : std::nullopt;
}

std::optional<kernels::MatmulTuning> choice_of(const Json& object) {
  const auto product = text_of(object, "product");
  const auto way = text_of(object, "way");
  const auto us = us_of(object, "us");
  const auto default_us = us_of(object, "default_us");
  if (!product || !way || !us || !default_us) {
    return std::nullopt;
  }
  return kernels::MatmulTuning{*product, *way, *us, *default_us};
}

}  // namespace

std::string to_json(const LibraryTuning& choices) {
  Json object{{"format", format}, {"library", choices.library}, {"choices", Json::array()}};
  for (const kernels::MatmulTuning& choice : choices.choices) {
    object["choices"].push_back({{"product", choice.product},
                                 {"way", choice.way},
                                 {"us", finite_or_0(choice.us)},
                                 {"default_us", finite_or_0(choice.default_us)}});
  }
  return json_text(object, 2) + "\n";
}

std::optional<LibraryTuning> choices_from_json(std::string_view text) {
  const Json object = json_if_any<Json>(text);
  const auto library = text_of(object, "library");
  const auto list = object.find("choices");
  if (text_of(object, "format") != format || !library || list == object.end() ||
      !list->is_array() || list->size() > most_choices) {
    return std::nullopt;
  }
  LibraryTuning result{.library = *library, .choices = {}};
  for (const Json& one : *list) {
    const auto choice = choice_of(one);
    if (!choice) {
      return std::nullopt;
    }
    result.choices.push_back(*choice);
  }
  return result;
}

}  // namespace fourfold::train
