// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the two halves of TokenFile share: unaligned loads and the wording of damage.
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <cstring>
#include <string>

namespace fourfold::io::detail {

inline constexpr std::size_t megatron_header_bytes = 34;

/// Unaligned load; the caller has checked the bounds.
template <class T>
T load(const MappedFile& file, std::size_t offset) {
  FOURFOLD_EXPECT(offset + sizeof(T) <= file.bytes().size());
  T value;
  std::memcpy(&value, file.bytes().data() + offset, sizeof(T));
  return value;
}

[[noreturn]] inline void corrupt(const MappedFile& file, std::size_t offset,
                                 const std::string& problem) {
  throw UserError(
      ExitCode::data_corrupt,
      format_message("{}: byte {}: {}; the file is damaged or not a token file, prepare or "
                     "copy it again",
                     file.path().string(), offset, problem));
}

}  // namespace fourfold::io::detail
