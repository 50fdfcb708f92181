// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "stranger.hpp"

#include <fourfold/base/contract.hpp>

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>

namespace fourfold::comm {
namespace {

/// A rank sends its opening as soon as it is connected; who sends a byte now and then is none.
constexpr std::chrono::seconds to_show_secret{3};

/// In the same time wherever they differ.
bool are_equal(std::string_view one, std::string_view other) {
  unsigned different = one.size() == other.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(one.size(), other.size()); ++i) {
    different |= one[i] ^ other[i];
  }
  return different == 0;
}

}  // namespace

std::string new_secret() {
  std::random_device device;
  std::string secret;
  while (secret.size() < secret_size) {
    secret += fmt::format("{:08x}", device() & 0xffffffffU);
  }
  return secret;
}

std::string opening_of(std::string_view secret) {
  FOURFOLD_EXPECT(secret.size() == secret_size);
  return std::string(secret) + "\n";
}

Stranger::Standing Stranger::hear(std::string_view secret, Clock::time_point now) {
  const ssize_t count =
      ::recv(socket_.get(), opening_.data() + has_come_, opening_.size() - has_come_, 0);
  if (count > 0) {
    has_come_ += count;
  } else if (count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
    return Standing::leaves;
  }
  if (has_come_ == opening_.size()) {
    return are_equal({opening_.data(), opening_.size()}, opening_of(secret)) ? Standing::is_known
                                                                             : Standing::leaves;
  }
  return now - came_ > to_show_secret ? Standing::leaves : Standing::waits;
}

}  // namespace fourfold::comm
