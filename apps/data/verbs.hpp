// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/progress_mode.hpp>
#include <fourfold/data/prepare.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::apps {

/// What `fourfold data prepare` was asked for.
struct PrepareRequest {
  std::string tokenizer = "byte";
  std::string output;
  std::vector<std::string> inputs;
  data::InputFormat format = data::InputFormat::automatic;
  bool append_end_of_text = false;
  std::string document_separator;  ///< as typed, with \n, \t, \r, \0 and \\ for these characters
  double validation_fraction = 0;
  bool check = false;
  ProgressMode progress = ProgressMode::automatic;
};
void prepare(const PrepareRequest& request);

/// What `fourfold data info` was asked for.
struct InfoRequest {
  std::vector<std::string> files;
  bool json = false;
  std::string tokenizer;  ///< empty: the one of the record beside the file, if there is one
  std::int64_t show = 0;  ///< first tokens to decode
};
void info(const InfoRequest& request);

/// What is known of one token file.
struct FileFacts {
  std::string path;
  std::string format;
  std::string type;
  std::int64_t size_bytes = 0;
  std::int64_t tokens = 0;
  std::optional<std::int64_t> documents;
  std::int32_t smallest_token = 0;
  std::int32_t largest_token = 0;
  std::optional<std::string> tokenizer;  ///< description from the record beside it
  std::vector<std::int32_t> first_tokens;
  std::optional<std::string> first_text;
};
std::string to_json(const std::vector<FileFacts>& files);

}  // namespace fourfold::apps
