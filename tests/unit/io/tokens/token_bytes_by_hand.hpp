// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Token files put together byte by byte from the formats' descriptions, without the writer under
/// test.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::test {

/// Little-endian bytes of one number, whatever the machine.
template <class T>
std::string little_endian(T value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
  }
  return bytes;
}

template <class T>
std::string little_endian(const std::vector<T>& values) {
  std::string bytes;
  for (const T value : values) {
    bytes += little_endian(value);
  }
  return bytes;
}

/// A Megatron index of these fields.
struct Index {
  std::string magic{"MMIDIDX\0\0", 9};
  std::uint64_t version = 1;
  std::uint8_t type = 8;
  std::vector<std::int32_t> lengths;
  std::vector<std::int64_t> pointers;
  std::vector<std::int64_t> boundaries;

  std::string bytes() const {
    return magic + little_endian(version) + little_endian(type) +
           little_endian(std::uint64_t{lengths.size()}) +
           little_endian(std::uint64_t{boundaries.size()}) + little_endian(lengths) +
           little_endian(pointers) + little_endian(boundaries);
  }
};

/// An llm.c file with `tokens` announced in its header and `payload` after it.
inline std::string llmc(std::int32_t magic, std::int32_t version, std::int32_t tokens,
                        const std::string& payload) {
  std::string bytes = little_endian(magic) + little_endian(version) + little_endian(tokens);
  bytes.resize(1024, '\0');
  return bytes + payload;
}

}  // namespace fourfold::test
