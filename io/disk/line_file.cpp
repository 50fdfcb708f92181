// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/io/line_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace fourfold::io {

void LineFile::fail(int reason) const {
  throw UserError(ExitCode::cannot_write,
                  fmt::format("cannot write {} ({}) make room or {}", path_.string(),
                              std::generic_category().message(reason), advice_));
}

void LineFile::open() {
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) {
    fail(errno);
  }
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file_.get(), &last, 1, size - 1) == 1 && last != '\n') {
    write("\n");
  }
}

void LineFile::write(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t written = ::write(file_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) {
      fail(errno);
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
  if (file_ && ::fsync(file_.get()) != 0 && errno != EINVAL) {  // EINVAL: a pipe, say
    fail(errno);
  }
}

}  // namespace fourfold::io
