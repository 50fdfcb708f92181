// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// JSON as it is found in the directory of a run: it may be of another version, cut off by a crash,
/// or rubbish. Every look-up has an answer, and none throws.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::telemetry {

using Json = nlohmann::ordered_json;

/// A small file; "discarded" when it cannot be read or is no JSON.
Json json_of_file(const std::filesystem::path& file);

/// Nothing when it is absent, null or of another type.
std::optional<double> number_in(const Json& json, const char* key);
/// The same for what is never negative.
std::optional<double> amount_in(const Json& json, const char* key);
/// The same for seconds since 1970 that a clock can show.
std::optional<double> time_in(const Json& json, const char* key);
/// The same for a whole number from 0 to 2^53, up to which programs agree on integers.
std::optional<std::int64_t> count_in(const Json& json, const char* key);
/// The same for 0 to 255.
std::optional<ExitCode> exit_code_in(const Json& json, const char* key);
/// As a line of metrics.jsonl and a status.json have it.
NewestStep newest_step_in(const Json& json);
/// Empty instead of nothing.
std::string text_in(const Json& json, const char* key);

/// Whether text is all that a crash or a bad disk has left of a file which begins as `opening`.
bool is_cut_of(std::string_view text, std::string_view opening);

}  // namespace fourfold::telemetry
