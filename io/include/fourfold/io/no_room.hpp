// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <source_location>
#include <string>

namespace fourfold::io {

/// A file cannot be written because the disk, its inodes or the user's quota are used up
/// (cannot_write). Told apart for who removes things and thereby makes room.
class NoRoom : public UserError {
 public:
  explicit NoRoom(const std::string& message,
                  std::source_location where = std::source_location::current())
      : UserError(ExitCode::cannot_write, message, where) {}
};

}  // namespace fourfold::io
