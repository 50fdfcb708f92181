// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <functional>
#include <string>

namespace fourfold {

/// What a program has to say before it ends, when not its main thread ends it: that one waits for
/// what will never come. There while this object is; one at a time.
class OnSuddenEnd {
 public:
  using Tell = std::function<void(ExitCode code, const std::string& why)>;

  /// @param tell  called by any thread, once, perhaps while the main thread goes on
  explicit OnSuddenEnd(Tell tell);
  ~OnSuddenEnd();
  OnSuddenEnd(const OnSuddenEnd&) = delete;
  OnSuddenEnd& operator=(const OnSuddenEnd&) = delete;
};

/// For who ends the process: says so, where the program wants to know. At most once, whoever calls.
void tell_fatal_exit(ExitCode code, const std::string& why) noexcept;

}  // namespace fourfold
