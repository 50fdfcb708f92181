// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/mapped_file.hpp>

namespace fourfold::data {
namespace {

/// The file of merges beside a vocab.json, or x-merges.txt beside x-vocab.json.
std::filesystem::path merges_file_of(const std::filesystem::path& file) {
  std::string name = file.stem().string();
  const std::size_t place = name.rfind("vocab");
  return place == std::string::npos
             ? std::filesystem::path()
             : file.parent_path() / (name.replace(place, 5, "merges") + ".txt");
}

}  // namespace

std::string tokenizer_identity(const std::string& named) {
  if (named == "byte") {
    return named;
  }
  std::error_code ignored;
  std::filesystem::path file(named);
  if (std::filesystem::is_directory(file, ignored)) {
    file = tokenizer_in(file).value_or(file);
  }
  io::Fingerprint content;
  const auto add = [&](const std::filesystem::path& path) {
    const io::MappedFile mapped(path);
    content.add(std::ssize(mapped.bytes()));
    content.add(mapped.bytes());
  };
  add(file);
  if (const auto merges = merges_file_of(file); std::filesystem::is_regular_file(merges, ignored)) {
    add(merges);
  }
  return content.str();
}

}  // namespace fourfold::data
