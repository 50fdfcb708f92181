// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/line_reader.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace fourfold::io {
namespace {

constexpr std::size_t first_buffer_bytes = std::size_t{1} << 20;

}  // namespace

LineReader::LineReader(const std::filesystem::path& path, std::size_t longest_line_bytes)
    : path_(path), longest_line_bytes_(longest_line_bytes) {
  RegularFile file = open_regular_file(path, O_RDONLY, Links::refuse);
  if (!file.descriptor) {
    throw UserError(ExitCode::config, format_message("{}: {}", path.string(), file.defect));
  }
  file_ = std::move(file.descriptor);
  size_bytes_ = file.size_bytes;
  ::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL);
  buffer_.resize(first_buffer_bytes + padding_bytes);
}

void LineReader::rewind() noexcept {
  offset_ = 0;
  begin_ = scanned_ = end_ = 0;
  passing_over_ = false;
  passed_over_ = 0;
}

/// Brings more of the file into the buffer, after the begin of the next line. @pre offset_ <
/// size_bytes_
void LineReader::fill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  scanned_ -= begin_;
  begin_ = 0;
  if (end_ > longest_line_bytes_) {
    passing_over_ = true;
    end_ = scanned_ = 0;
  }
  if (end_ + padding_bytes == buffer_.size()) {
    buffer_.resize(2 * end_ + padding_bytes);
  }
  const std::size_t room = buffer_.size() - padding_bytes - end_;
  ssize_t got = 0;
  do {
    got = ::pread(file_.get(), buffer_.data() + end_,
                  std::min<std::uint64_t>(room, size_bytes_ - offset_), offset_);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: cannot be read at byte {} ({}); check the file system",
                                   path_.string(), offset_, std::strerror(errno)));
  }
  if (got == 0) {
    size_bytes_ = offset_;  // it was made shorter meanwhile
  }
  end_ += got;
  offset_ += got;
}

bool LineReader::next(std::string_view& line) {
  for (;;) {
    const std::string_view rest(buffer_.data() + scanned_, end_ - scanned_);
    const std::size_t found = rest.find('\n');
    const bool has_end = found != std::string_view::npos;
    if (!has_end && offset_ < size_bytes_) {
      scanned_ = end_;
      fill();
      continue;
    }
    const std::size_t stop = has_end ? scanned_ + found : end_;
    if (!has_end && begin_ == end_ && !passing_over_) {
      return false;
    }
    line = {buffer_.data() + begin_, stop - begin_};
    begin_ = scanned_ = has_end ? stop + 1 : end_;
    if (!std::exchange(passing_over_, false) && line.size() <= longest_line_bytes_) {
      return true;
    }
    ++passed_over_;
  }
}

}  // namespace fourfold::io
