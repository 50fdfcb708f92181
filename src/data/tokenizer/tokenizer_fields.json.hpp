// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The members of a tokenizer.json, read with messages that name the file and the member. Included
/// by *.json.cpp files only.
#pragma once

#include "tokenizer/bpe_description.hpp"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string>

namespace fourfold::data::detail {

/// Throws that a component is not supported (config).
[[noreturn]] void unsupported(const std::filesystem::path& file, const std::string& component);

/// The member of an object, or null where it is missing.
const nlohmann::json& member(const nlohmann::json& object, const char* key);
/// Whether a member is there and true.
bool is_set(const nlohmann::json& object, const char* key);
/// A member that must be a text.
std::string text_of(const std::filesystem::path& file, const nlohmann::json& object,
                    const char* key);

/// Reads "normalizer", "pre_tokenizer" and "decoder" of a tokenizer.json into the description.
void read_pipeline(const nlohmann::json& document, BpeDescription& description);

}  // namespace fourfold::data::detail
