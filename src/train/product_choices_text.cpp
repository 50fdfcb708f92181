// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "product_choices_text.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/line_follower.hpp>

#include <fmt/format.h>

#include <map>
#include <system_error>

namespace fourfold::train {

LibraryChoices merged(std::span<const LibraryChoices> all) {
  FOURFOLD_EXPECT(!all.empty());
  std::map<std::string, kernels::ProductChoice> of_product;
  for (const LibraryChoices& one : all) {
    if (one.library != all.front().library) {
      continue;
    }
    for (const kernels::ProductChoice& choice : one.choices) {
      of_product.emplace(choice.product, choice);
    }
  }
  LibraryChoices result{.library = all.front().library, .choices = {}};
  for (const auto& [product, choice] : of_product) {
    result.choices.push_back(choice);
  }
  return result;
}

std::optional<LibraryChoices> read_product_choices(const std::filesystem::path& path) {
  constexpr std::uint64_t most_bytes = 64 << 20;
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
    return std::nullopt;
  }
  const std::optional<std::string> text = io::text_if_readable(path, most_bytes);
  auto choices = text ? choices_from_json(*text) : std::nullopt;
  if (!choices) {
    throw UserError(
        ExitCode::config,
        fmt::format("train.product_choices = \"{}\" is not to be used (it is {}) name "
                    "another file, or remove it: it is made anew",
                    path.string(),
                    text ? "none that fourfold has written" : "no regular file that can be read"));
  }
  return choices;
}

void write_product_choices(const std::filesystem::path& path, const LibraryChoices& choices) {
  const std::string text = to_json(choices);
  if (io::text_if_readable(path, text.size()) == text) {
    return;
  }
  io::AtomicFile file(path);
  file.write(text);
  file.publish();
}

}  // namespace fourfold::train
