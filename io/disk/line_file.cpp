// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/lease_file.hpp"
#include "disk/work_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/line_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace fourfold::io {

void LineFile::fail(std::string_view call, int error_number) const {
  throw UserError(ExitCode::cannot_write,
                  format_message("cannot write {} ({}); make room or {}", path_.string(),
                                 write_failure(path_, call, error_number), advice_));
}

RegularFile LineFile::opened() const {
  RegularFile file = open_regular_file(path_, O_RDWR | O_CREAT | O_APPEND, Links::refuse);
  if (!file.descriptor && file.error_number == 0) {
    throw UserError(ExitCode::cannot_write,
                    format_message("cannot write {} (it {}); remove it or {}", path_.string(),
                                   file.defect, advice_));
  }
  if (!file.descriptor) {
    fail("open", file.error_number);
  }
  return file;
}

void LineFile::open() {
  RegularFile file = opened();
  if (has_fenced_in(path_.parent_path())) {
    leave_to_earlier_holder(path_);
    file = opened();
  }
  // After it was opened: who takes over from now on leaves this very file to us.
  refuse_fenced_off(path_);
  file_ = std::move(file.descriptor);
  char last = '\n';
  if (file.size_bytes > 0 && ::pread(file_.get(), &last, 1, file.size_bytes - 1) == 1 &&
      last != '\n') {
    write("\n");
  }
}

void LineFile::write(const std::string& text) {
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = ::write(file_.get(), rest.data(), rest.size());
    if (written < 0 && errno != EINTR) {
      fail("write", errno);
    }
    rest.remove_prefix(std::max<ssize_t>(written, 0));
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
