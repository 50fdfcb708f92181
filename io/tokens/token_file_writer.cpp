// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/io/token_file_writer.hpp>

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <limits>

namespace fourfold::io {
namespace {

std::filesystem::path with_suffix(const std::filesystem::path& prefix, const char* suffix) {
  return prefix.string() + suffix;
}

template <class T>
void put(AtomicFile& file, T value) {
  file.write(std::as_bytes(std::span(&value, 1)));
}

}  // namespace

TokenType megatron_type(std::int64_t vocab) noexcept {
  return vocab < 65500 ? TokenType::u16 : TokenType::i32;
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& prefix, TokenType type)
    : type_(type),
      tokens_file_(with_suffix(prefix, ".bin")),
      index_file_(with_suffix(prefix, ".idx")) {
  FOURFOLD_EXPECT(type == TokenType::u16 || type == TokenType::i32);
}

void TokenFileWriter::add_document(std::span<const std::int32_t> tokens) {
  if (tokens.size() > std::numeric_limits<std::int32_t>::max()) {
    throw UserError(
        ExitCode::data_corrupt,
        fmt::format(
            "{}: a document of {} tokens is too long (the format counts to 2^31 - 1); split it "
            "with a document separator",
            tokens_file_.path().string(), tokens.size()));
  }
  if (type_ == TokenType::u16) {
    narrow_.clear();
    for (const std::int32_t token : tokens) {
      FOURFOLD_EXPECT(token >= 0 && token <= std::numeric_limits<std::uint16_t>::max());
      narrow_.push_back(static_cast<std::uint16_t>(token));
    }
    tokens_file_.write(std::as_bytes(std::span(narrow_)));
  } else {
    tokens_file_.write(std::as_bytes(tokens));
  }
  lengths_.push_back(static_cast<std::int32_t>(tokens.size()));
  tokens_ += std::ssize(tokens);
}

void TokenFileWriter::publish() {
  index_file_.write(std::string_view("MMIDIDX\0\0", 9));
  put<std::uint64_t>(index_file_, 1);
  put(index_file_, static_cast<std::uint8_t>(type_));
  put<std::uint64_t>(index_file_, lengths_.size());
  put<std::uint64_t>(index_file_, lengths_.size() + 1);
  index_file_.write(std::as_bytes(std::span(lengths_)));
  std::int64_t pointer = 0;
  for (const std::int32_t length : lengths_) {
    put(index_file_, pointer);
    pointer += length * static_cast<std::int64_t>(size_bytes(type_));
  }
  for (std::int64_t boundary = 0; boundary <= documents(); ++boundary) {
    put(index_file_, boundary);
  }
  tokens_file_.sync();
  index_file_.sync();
  // Never the old index beside the new tokens: the index is what makes the pair readable.
  std::error_code failure;
  std::filesystem::remove(index_file_.path(), failure);
  if (failure) {
    throw UserError(ExitCode::cannot_write,
                    fmt::format("{}: the older file cannot be removed ({}); check its "
                                "permissions",
                                index_file_.path().string(), failure.message()));
  }
  tokens_file_.publish();
  index_file_.publish();
}

}  // namespace fourfold::io
