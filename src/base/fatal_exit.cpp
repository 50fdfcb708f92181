// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/fatal_exit.hpp>

#include <mutex>
#include <utility>

namespace fourfold {

namespace {

std::mutex mutex;
OnSuddenEnd::Tell the_tell;  // NOLINT(cert-err58-cpp): its constructor does not throw

OnSuddenEnd::Tell take_tell() {
  const std::scoped_lock lock(mutex);
  return std::exchange(the_tell, nullptr);
}

}  // namespace

OnSuddenEnd::OnSuddenEnd(Tell tell) {
  const std::scoped_lock lock(mutex);
  the_tell = std::move(tell);
}

OnSuddenEnd::~OnSuddenEnd() {
  take_tell();
}

void tell_fatal_exit(ExitCode code, const std::string& why) noexcept {
  try {
    if (const OnSuddenEnd::Tell tell = take_tell()) {
      tell(code, why);
    }
  } catch (...) {  // the process ends anyway
  }
}

}  // namespace fourfold
