// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/atomic_file.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <utility>

namespace fourfold::io {
namespace {

constexpr std::size_t buffer_bytes = 1 << 20;

}  // namespace

AtomicFile::AtomicFile(std::filesystem::path path)
    : path_(std::move(path)), temporary_(fmt::format("{}.tmp-{}", path_.string(), ::getpid())) {
  ::unlink(temporary_.c_str());  // of a process of the same number that died
  file_ = std::make_unique<OutputFile>(OutputFile::create(temporary_, path_));
  buffer_.reserve(buffer_bytes);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) {
    file_.reset();
    ::unlink(temporary_.c_str());
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  FOURFOLD_EXPECT(file_ != nullptr);
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= buffer_bytes) {
    flush();
  }
}

void AtomicFile::flush() {
  file_->write_at(written_bytes_, buffer_);
  written_bytes_ += buffer_.size();
  buffer_.clear();
}

void AtomicFile::sync() {
  if (file_ == nullptr) {
    return;
  }
  flush();
  file_->sync();
  file_->close();
  file_.reset();
}

void AtomicFile::publish() {
  sync();
  rename_path(temporary_, path_);
  temporary_.clear();
  const std::filesystem::path folder = path_.parent_path();
  sync_directory(folder.empty() ? "." : folder);
}

}  // namespace fourfold::io
