// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/work_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/line_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace fourfold::io {

void LineFile::fail(std::string_view call, int error_number) const {
  throw UserError(ExitCode::cannot_write,
                  fmt::format("cannot write {} ({}); make room or {}", path_.string(),
                              write_failure(path_, call, error_number), advice_));
}

/// A new file with the same lines, for who has taken the directory over: an earlier holder that
/// stood still may have the old one open, and what it still appends is to come to nobody's eyes.
void LineFile::leave_to_earlier_holder() const {
  constexpr std::uint64_t part_bytes = std::uint64_t{1} << 20;
  InputFile before;
  if (before.open(path_)) {
    return;  // none, or none that has lines: open() says so
  }
  AtomicFile copy(path_);
  std::vector<std::byte> part;
  for (std::uint64_t at = 0; at < before.size_bytes(); at += part.size()) {
    part.resize(std::min(part_bytes, before.size_bytes() - at));
    if (const Defect defect = before.read_at(at, part)) {
      throw UserError(ExitCode::cannot_write,
                      fmt::format("{}: {}; check the file system", path_.string(), *defect));
    }
    copy.write(part);
  }
  copy.publish();
}

RegularFile LineFile::opened() const {
  RegularFile file = open_regular_file(path_, O_RDWR | O_CREAT | O_APPEND, Links::refuse);
  if (!file.descriptor && file.error_number == 0) {
    throw UserError(ExitCode::cannot_write, fmt::format("cannot write {} (it {}); remove it or {}",
                                                        path_.string(), file.defect, advice_));
  }
  if (!file.descriptor) {
    fail("open", file.error_number);
  }
  return file;
}

void LineFile::open() {
  RegularFile file = opened();
  if (has_fenced_in(path_.parent_path())) {
    leave_to_earlier_holder();
    file = opened();
  }
  file_ = std::move(file.descriptor);
  char last = '\n';
  if (file.size_bytes > 0 &&
      ::pread(file_.get(), &last, 1, static_cast<off_t>(file.size_bytes) - 1) == 1 &&
      last != '\n') {
    write("\n");
  }
}

void LineFile::write(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) {
      fail("write", errno);
    }
    done += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
}

void LineFile::append(const std::string& line) {
  if (!file_) {
    open();
  }
  write(line + "\n");
}

void LineFile::sync() {
  if (file_ && ::fsync(file_.get()) != 0 && errno != EINVAL) {  // nothing to sync there
    fail("fsync", errno);
  }
}

}  // namespace fourfold::io
