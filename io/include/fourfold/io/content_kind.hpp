// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a file is, told by its first bytes, whatever it is called.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace fourfold::io {

/// A kind of file that is neither plain text nor tokens.
struct ContentKind {
  std::string_view name;    ///< "gzip-compressed", "a Parquet file": what comes after "is"
  std::string_view remedy;  ///< "decompress it first (gzip -d)": what to do to have text
  bool is_text = false;     ///< in another encoding than UTF-8
  bool is_guess = false;    ///< by NUL bytes alone
};

/// The kind of a file that begins with `bytes`, by its format's own signature; nothing for text and
/// for what is not known. Hand over 64 KiB where the file has as much: text in UTF-16 without a
/// mark, and what is binary without a signature, show by NUL bytes there.
std::optional<ContentKind> kind_of_content(std::span<const std::byte> bytes);

/// Whether `bytes`, which a character may be cut off at the end of, are UTF-8 without control
/// characters but those that texts have (tabs, line and page ends, escapes).
bool is_plain_text(std::span<const std::byte> bytes);

}  // namespace fourfold::io
