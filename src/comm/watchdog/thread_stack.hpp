// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <string>
#include <vector>

namespace fourfold::comm {

/// Where another thread of this process stands. It is interrupted by a signal of its own and goes
/// on; since its code may use memory below its stack pointer, the handler has a stack of its own.
/// One per process.
class ThreadStack {
 public:
  /// Of the calling thread.
  ThreadStack();
  ~ThreadStack();
  ThreadStack(const ThreadStack&) = delete;
  ThreadStack& operator=(const ThreadStack&) = delete;

  /// Called by another thread: a line per function, the innermost first. Empty when the thread does
  /// not answer within a second.
  std::vector<std::string> read() const;

 private:
  pthread_t thread_;
  std::vector<char> handler_stack_;
};

}  // namespace fourfold::comm
