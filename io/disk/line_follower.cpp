// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"

#include <fourfold/io/line_follower.hpp>

#include <algorithm>
#include <span>
#include <string>

namespace fourfold::io {

void LineFollower::start_again(const std::function<void()>& forget) {
  if (file_number_ != 0) {
    forget();
  }
  file_number_ = 0;
  position_ = 0;
  cut_off_.clear();
  passing_over_ = false;
}

void LineFollower::read_new(const std::function<void()>& forget,
                            const std::function<void(std::string_view)>& on_line) {
  constexpr std::uint64_t piece_bytes = 1 << 20;
  InputFile file;
  const std::uint64_t number = number_of(path_);
  if (number == 0 || file.open(path_)) {
    start_again(forget);
    return;
  }
  if (number != file_number_ || file.size_bytes() < position_) {
    start_again(forget);
    file_number_ = number;
  }
  if (file.size_bytes() - position_ > most_bytes_) {
    position_ = file.size_bytes() - most_bytes_;
    cut_off_.clear();
    passing_over_ = true;
  }
  std::string piece;
  while (position_ < file.size_bytes()) {
    piece.resize(std::min(piece_bytes, file.size_bytes() - position_));
    if (file.read_at(position_, std::as_writable_bytes(std::span(piece)))) {
      return;  // cut off meanwhile: the next look sees to that
    }
    position_ += piece.size();
    pass_on(piece, on_line);
  }
}

void LineFollower::pass_on(std::string_view text,
                           const std::function<void(std::string_view)>& on_line) {
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    const std::string_view rest_of_line = text.substr(0, end);
    const bool too_long = cut_off_.size() + rest_of_line.size() > longest_line_bytes_;
    if (!passing_over_ && !too_long) {
      on_line(cut_off_.empty() ? rest_of_line : cut_off_.append(rest_of_line));
    }
    cut_off_.clear();
    passing_over_ = false;
    text.remove_prefix(end + 1);
  }
  if (passing_over_ || cut_off_.size() + text.size() > longest_line_bytes_) {
    cut_off_.clear();
    passing_over_ = true;
  } else {
    cut_off_ += text;
  }
}

std::optional<std::string> text_if_readable(const std::filesystem::path& path,
                                            std::uint64_t most_bytes) {
  std::string text;
  return read_file(path, most_bytes, text) ? std::nullopt : std::optional(std::move(text));
}

}  // namespace fourfold::io
