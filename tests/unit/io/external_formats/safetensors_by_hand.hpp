// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::harness {

/// A safetensors file of this header and so many bytes after it, whether it holds together or not.
inline std::string safetensors_by_hand(const std::string& header, std::size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) {
    bytes.push_back(static_cast<char>((std::uint64_t{header.size()} >> (8 * i)) & 0xff));
  }
  return bytes + header + std::string(data_bytes, 'x');
}

/// Three arrays, one of them empty, in a header with all that a header can have.
inline std::string small_safetensors() {
  return safetensors_by_hand(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("a":{"dtype":"BF16","shape":[3],"data_offsets":[24,30]},)"
      R"("e":{"dtype":"I8","shape":[0,9],"data_offsets":[30,30]}}  )",
      30);
}

/// Two arrays whose entries are lists, one of them with a type that is an object: the library takes
/// both forms.
inline std::string safetensors_of_lists() {
  return safetensors_by_hand(R"({"b":["F32",[2,3],[0,24]],"a":[{"BF16":null},[3],[24,30]]}  )", 30);
}

/// The file with each byte of length and header replaced by many others, cut off at each length,
/// and with bytes added: what hostile files are made of. Some still hold together.
inline std::vector<std::string> mutations_of(const std::string& file, std::size_t data_bytes) {
  std::vector<std::string> files;
  const std::string replacements("\0\x01\x08\x20\"'0129[]{},:\\-.eE\x7f\xc3\xff", 25);
  for (std::size_t place = 0; place < file.size() - data_bytes; ++place) {
    for (const char replacement : replacements) {
      files.push_back(file);
      files.back()[place] = replacement;
    }
    files.push_back(file);
    files.back()[place] = static_cast<char>(file[place] ^ 1);
    files.push_back(file);
    files.back().erase(place, 1);
    files.push_back(file);
    files.back().insert(place, 1, file[place]);
  }
  for (std::size_t length = 0; length < file.size(); ++length) {
    files.push_back(file.substr(0, length));
  }
  files.push_back(file + "x");
  return files;
}

}  // namespace fourfold::harness
