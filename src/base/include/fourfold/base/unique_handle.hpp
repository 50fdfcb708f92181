// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace fourfold {

/// Owns one native handle (MPI_Comm, hid_t, a file descriptor, ...) and closes it exactly once.
/// Move-only. Traits: native_type, static native_type null() noexcept, static void
/// close(native_type) noexcept (logs, never throws).
template <class Traits>
class UniqueHandle {
 public:
  using native_type = typename Traits::native_type;

  UniqueHandle() noexcept = default;
  explicit UniqueHandle(native_type handle) noexcept : handle_(handle) {}
  UniqueHandle(UniqueHandle&& other) noexcept : handle_(other.release()) {}
  UniqueHandle& operator=(UniqueHandle&& other) noexcept {
    if (this != &other) {
      reset(other.release());
    }
    return *this;
  }
  ~UniqueHandle() { reset(); }

  native_type get() const noexcept { return handle_; }
  explicit operator bool() const noexcept { return !(handle_ == Traits::null()); }
  native_type release() noexcept { return std::exchange(handle_, Traits::null()); }
  void reset(native_type next = Traits::null()) noexcept {
    native_type old = std::exchange(handle_, next);
    if (!(old == Traits::null())) {
      Traits::close(old);
    }
  }

 private:
  native_type handle_ = Traits::null();
};

struct FileDescriptorTraits {
  using native_type = int;
  static native_type null() noexcept { return -1; }
  static void close(native_type descriptor) noexcept { ::close(descriptor); }
};

/// Owns a POSIX file descriptor. Whoever needs to know that data reached the disk calls fsync
/// first: closing says nothing about it.
using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

}  // namespace fourfold
