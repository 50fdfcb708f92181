// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/token_file_writer.hpp>

#include <cerrno>
#include <cstring>
#include <limits>

namespace fourfold::io {
namespace {

std::filesystem::path with_suffix(const std::filesystem::path& prefix, const char* suffix) {
  return prefix.string() + suffix;
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
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: a document of {} tokens is too long (the format counts to "
                                   "2^31 - 1); split it with a document separator",
                                   tokens_file_.path().string(), tokens.size()));
  }
  if (type_ == TokenType::u16) {
    narrow_.clear();
    for (const std::int32_t token : tokens) {
      FOURFOLD_EXPECT(token >= 0 && token <= std::numeric_limits<std::uint16_t>::max());
      narrow_.push_back(static_cast<std::uint16_t>(token));
    }
  }
  const auto bytes =
      type_ == TokenType::u16 ? std::as_bytes(std::span(narrow_)) : std::as_bytes(tokens);
  tokens_file_.write(bytes);
  tokens_bytes_.add(bytes);
  lengths_.push_back(static_cast<std::int32_t>(tokens.size()));
  tokens_ += std::ssize(tokens);
}

void TokenFileWriter::finish() {
  Fingerprint written;
  const auto put = [&]<class T>(std::span<const T> values) {
    index_file_.write(std::as_bytes(values));
    written.add(std::as_bytes(values));
  };
  const auto put_number = [&](std::int64_t number) {
    put(std::span<const std::int64_t>(&number, 1));
  };
  put(std::span<const char>("MMIDIDX\0", 9));
  put_number(1);
  put(std::span<const TokenType>(&type_, 1));
  put_number(documents());
  put_number(documents() + 1);
  put(std::span<const std::int32_t>(lengths_));
  std::int64_t pointer = 0;
  for (const std::int32_t length : lengths_) {
    put_number(pointer);
    pointer += length * size_bytes(type_);
  }
  for (std::int64_t boundary = 0; boundary <= documents(); ++boundary) {
    put_number(boundary);
  }
  index_digest_ = written.str();
  tokens_digest_ = tokens_bytes_.str();
  tokens_file_.sync();
  index_file_.sync();
}

void TokenFileWriter::withdraw_older() const {
  // The index first, and each for good before the next: none must come back beside what is new when
  // the machine goes down.
  for (const std::filesystem::path& file : {index_file_.path(), tokens_file_.path()}) {
    std::error_code failure;
    const bool was_there = std::filesystem::remove(file, failure);
    if (failure) {
      throw UserError(
          ExitCode::cannot_write,
          format_message("{}: the older file cannot be removed ({}); check its permissions",
                         file.string(), failure.message()));
    }
    if (was_there) {
      const std::filesystem::path folder = file.parent_path();
      sync_directory(folder.empty() ? "." : folder);
    }
  }
}

void TokenFileWriter::publish_tokens() {
  tokens_file_.publish();
}

void TokenFileWriter::publish_index() {
  index_file_.publish();
}

void TokenFileWriter::publish() {
  finish();
  withdraw_older();
  publish_tokens();
  publish_index();
}

}  // namespace fourfold::io
