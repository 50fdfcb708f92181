// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/regular_file.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/data/tokenizer_files.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/first_look.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

namespace fourfold::train {
namespace {

bool is_named_by_a_person(const runfile::EffectiveConfig& effective, const char* key) {
  const auto origin = effective.origins.find(key);
  return origin != effective.origins.end() && !origin->second.where().empty();
}

void add_schedule(const runfile::EffectiveConfig& effective,
                  std::vector<runfile::RunInput>& inputs) {
  std::string csv = schedule_file_text(effective);
  if (!csv.empty()) {
    inputs.push_back({.key = "mesh.schedule",
                      .value = effective.config.mesh.schedule,
                      .files = {{whole_path(effective.config.mesh.schedule), std::move(csv)}}});
  }
}

/// What says more of a tokenizer, for whoever exports the model with it: the end of a text, the
/// template of a chat. What cannot be read is nobody's to miss.
void add_side_files(runfile::RunInput& input) {
  constexpr std::uint64_t most_bytes = 16 << 20;
  const std::filesystem::path folder = input.files.front().path.parent_path();
  std::vector<std::string> names(data::tokenizer_side_files.begin(),
                                 data::tokenizer_side_files.end());
  names.emplace_back("config.json");
  for (const std::string& name : names) {
    std::string bytes;
    if (!read_regular_file(folder / name, Links::follow, most_bytes, bytes)) {
      input.files.push_back({folder / name, std::move(bytes)});
    }
  }
}

void add_tokenizer(const runfile::EffectiveConfig& effective,
                   std::vector<runfile::RunInput>& inputs) {
  constexpr const char* key = "data.tokenizer";
  if (!is_named_by_a_person(effective, key) ||
      effective.config.data.tokenizer == runfile::unknown_tokenizer_name) {
    return;
  }
  const std::unique_ptr<data::Tokenizer> tokenizer =
      data::open_tokenizer(effective.config.data.tokenizer);
  const data::TokenizerFiles& read = tokenizer->files();
  if (read.main.path.empty()) {
    return;  // "byte"
  }
  runfile::RunInput input{.key = key,
                          .value = effective.config.data.tokenizer,
                          .files = {{whole_path(read.main.path), read.main.bytes}}};
  if (read.merges) {
    input.files.push_back({whole_path(read.merges->path), read.merges->bytes});
  }
  add_side_files(input);
  inputs.push_back(std::move(input));
}

}  // namespace

std::vector<runfile::RunInput> run_inputs(const runfile::EffectiveConfig& effective) {
  std::vector<runfile::RunInput> inputs;
  add_schedule(effective, inputs);
  add_tokenizer(effective, inputs);
  return inputs;
}

}  // namespace fourfold::train
