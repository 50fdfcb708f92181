// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/unique_handle.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::comm {

using Socket = FileDescriptor;

/// A TCP connection that carries lines, without blocking. One thread at a time.
class LineConnection {
 public:
  /// Longer lines end the connection.
  static constexpr std::size_t longest_line = std::size_t{4} << 20;

  explicit LineConnection(Socket socket) : socket_(std::move(socket)) {}
  /// To a port of a machine, by name. Blocks for `timeout_ms` at most. Nothing when nobody answers.
  static std::optional<LineConnection> open(const std::string& host, std::uint16_t port,
                                            int timeout_ms);

  int descriptor() const noexcept { return socket_.get(); }
  /// Whether it is closed by either side, or broken.
  bool is_closed() const noexcept { return is_closed_; }
  bool has_unsent() const noexcept { return !unsent_.empty(); }
  /// Whether the other machine has taken all that was sent.
  bool is_acknowledged() const noexcept;

  /// @param line  with its end
  void send(std::string_view line);
  /// Moves what can be moved in both directions, 1 MiB at most of what comes: the rest waits for
  /// the next time, so that nobody who sends without end keeps others from being heard.
  void move();
  /// The next whole line that came, without its end.
  std::optional<std::string> next();

 private:
  Socket socket_;
  std::string unsent_;
  std::string received_;
  std::size_t read_ = 0;  ///< of what was received
  bool is_closed_ = false;
};

/// Where connections come in, on all addresses of this machine and a port that the system chooses.
/// @throws SystemError (node_fault) when there is no port to be had
Socket open_listener(std::uint16_t& port);
/// A connection that waits there; none: there is none.
Socket accept_from(const Socket& listener);

}  // namespace fourfold::comm
