// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "line_connection.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <system_error>
#include <utility>

namespace fourfold::comm {
namespace {

void make_ready(int socket) noexcept {
  constexpr int yes = 1;
  ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

Socket connect_to(const addrinfo& address, int timeout_ms) {
  Socket socket(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) {
    return {};
  }
  if (::connect(socket.get(), address.ai_addr, address.ai_addrlen) == 0) {
    return socket;
  }
  pollfd ready{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  int error = errno;
  socklen_t size = sizeof error;
  if (error != EINPROGRESS || ::poll(&ready, 1, timeout_ms) != 1 ||
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
    return {};
  }
  return socket;
}

/// For both versions of IP, or for the older one where there is no other; on a port that the system
/// chooses.
Socket listening_socket() {
  constexpr int no = 0;
  for (const auto family : std::array<sa_family_t, 2>{AF_INET6, AF_INET}) {
    Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_storage any{};  // whose other bytes are zero in both
    any.ss_family = family;
    if (family == AF_INET6 && socket) {
      ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
    }
    if (socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&any),
                         family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in)) == 0) {
      return socket;
    }
  }
  return {};
}

}  // namespace

std::optional<LineConnection> LineConnection::open(const std::string& host, std::uint16_t port,
                                                   int timeout_ms) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list) != 0) {
    return std::nullopt;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* address = list; address != nullptr; address = address->ai_next) {
    if (Socket socket = connect_to(*address, timeout_ms)) {
      make_ready(socket.get());
      return LineConnection(std::move(socket));
    }
  }
  return std::nullopt;
}

bool LineConnection::is_acknowledged() const noexcept {
  int waiting = 0;
  return unsent_.empty() && ::ioctl(socket_.get(), SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

void LineConnection::send(std::string_view line) {
  // A peer that stands still takes nothing; what it would be told is stale by the time it does.
  if (unsent_.size() < longest_line) {
    unsent_ += line;
  }
}

void LineConnection::move() {
  constexpr std::size_t most_at_once = std::size_t{1} << 20;
  std::array<char, 65536> piece;
  received_.erase(0, read_);
  read_ = 0;
  for (std::size_t all = 0; all < most_at_once;) {
    const ssize_t came = ::recv(socket_.get(), piece.data(), piece.size(), 0);
    if (came > 0) {
      received_.append(piece.data(), came);
      all += came;
      if (received_.size() > 2 * longest_line) {
        is_closed_ = true;
        return;
      }
      continue;
    }
    if (came == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
      is_closed_ = true;
    }
    if (came == 0 || errno != EINTR) {
      break;
    }
  }
  while (!unsent_.empty()) {
    const ssize_t went = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (went > 0) {
      unsent_.erase(0, went);
    } else if (errno != EINTR) {
      is_closed_ = is_closed_ || (errno != EAGAIN && errno != EWOULDBLOCK);
      break;
    }
  }
}

std::optional<std::string> LineConnection::next() {
  const std::size_t end = received_.find('\n', read_);
  const std::size_t size = std::min(end, received_.size()) - read_;
  if (end == std::string::npos || size > longest_line) {
    is_closed_ = is_closed_ || size > longest_line;
    return std::nullopt;
  }
  std::string line = received_.substr(read_, size);
  read_ = end + 1;
  return line;
}

Socket open_listener(std::uint16_t& port) {
  Socket socket = listening_socket();
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (!socket || ::listen(socket.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw SystemError(ExitCode::node_fault,
                      format_message("no TCP port can be had to watch the ranks ({})",
                                     std::generic_category().message(errno)));
  }
  port =
      ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                          : reinterpret_cast<const sockaddr_in&>(address).sin_port);
  return socket;
}

Socket accept_from(const Socket& listener) {
  Socket socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (socket) {
    make_ready(socket.get());
  }
  return socket;
}

}  // namespace fourfold::comm
