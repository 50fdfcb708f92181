// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/unique_handle.hpp>

#include <unistd.h>

namespace fourfold {

struct FileDescriptorTraits {
  using native_type = int;
  static native_type null() noexcept { return -1; }
  static void close(native_type descriptor) noexcept { ::close(descriptor); }
};

/// Owns a POSIX file descriptor. Whoever needs to know that data reached the disk calls fsync
/// first: closing says nothing about it.
using FileDescriptor = UniqueHandle<FileDescriptorTraits>;

}  // namespace fourfold
