// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "found_json.json.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/io/line_follower.hpp>

#include <cmath>

namespace fourfold::telemetry {
namespace {

const Json* find(const Json& json, const char* key) {
  const auto found = json.find(key);  // of what is no object: its end
  return found == json.end() ? nullptr : &*found;
}

std::optional<double> number_between(const Json& json, const char* key, double low, double high) {
  const std::optional<double> number = number_in(json, key);
  return number && *number >= low && *number <= high ? number : std::nullopt;
}

}  // namespace

Json json_of_file(const std::filesystem::path& file) {
  constexpr std::uint64_t most_bytes = 64 << 20;
  const std::optional<std::string> text = io::text_if_readable(file, most_bytes);
  return text ? json_if_any<Json>(*text) : Json(Json::value_t::discarded);
}

std::optional<double> number_in(const Json& json, const char* key) {
  const Json* const value = find(json, key);
  return value != nullptr && value->is_number() && std::isfinite(value->get<double>())
             ? std::optional(value->get<double>())
             : std::nullopt;
}

std::optional<double> amount_in(const Json& json, const char* key) {
  return number_between(json, key, 0, HUGE_VAL);
}

std::optional<double> time_in(const Json& json, const char* key) {
  constexpr double year_5000 = 1e11;
  return number_between(json, key, 1, year_5000);
}

std::optional<std::int64_t> count_in(const Json& json, const char* key) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  const Json* const value = find(json, key);
  return value != nullptr ? whole_number_if_any<std::int64_t>(*value, 0, most) : std::nullopt;
}

std::optional<ExitCode> exit_code_in(const Json& json, const char* key) {
  constexpr std::int64_t most = 255;
  const std::optional<std::int64_t> code = count_in(json, key);
  return code && *code <= most ? std::optional(static_cast<ExitCode>(*code)) : std::nullopt;
}

NewestStep newest_step_in(const Json& json) {
  return {.loss = number_in(json, "loss"),
          .tokens_per_s = amount_in(json, "tokens_per_s"),
          .mfu = amount_in(json, "mfu"),
          .step_s = amount_in(json, "step_s")};
}

std::string text_in(const Json& json, const char* key) {
  const Json* const value = find(json, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

bool is_cut_of(std::string_view text, std::string_view opening) {
  return text.starts_with(opening) || (!text.empty() && opening.starts_with(text));
}

}  // namespace fourfold::telemetry
