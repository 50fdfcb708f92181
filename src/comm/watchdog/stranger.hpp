// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "line_connection.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold::comm {

/// Characters of a run's secret: 256 random bits, as hexadecimal digits.
inline constexpr std::size_t secret_size = 64;

/// One that nobody can guess. Rank 0 makes it, and tells it the others over their communicator.
std::string new_secret();

/// What a connection begins with, before its first line.
/// @pre secret.size() == secret_size
std::string opening_of(std::string_view secret);

/// A connection of which nobody knows yet who is at its other end: anybody who reaches the port. It
/// is read no further than an opening is long, into memory that does not depend on what it sends.
class Stranger {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Standing {
    waits,     ///< less than an opening has come
    is_known,  ///< it has the secret: admit() it
    leaves     ///< it has another, has hung up, or has taken too long
  };

  Stranger(Socket socket, Clock::time_point now) : socket_(std::move(socket)), came_(now) {}

  int descriptor() const noexcept { return socket_.get(); }
  /// Reads what has come. How long that takes does not tell how much of the secret is right.
  Standing hear(std::string_view secret, Clock::time_point now);
  /// What follows the opening. @pre hear() has said is_known
  LineConnection admit() && { return LineConnection(std::move(socket_)); }

 private:
  Socket socket_;
  Clock::time_point came_;
  std::array<char, secret_size + 1> opening_{};
  std::size_t has_come_ = 0;
};

}  // namespace fourfold::comm
