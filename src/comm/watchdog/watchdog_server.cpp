// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watchdog_server.hpp"

#include <fourfold/base/contract.hpp>

#include <poll.h>

#include <algorithm>
#include <utility>

namespace fourfold::comm {
namespace {

using Seconds = std::chrono::duration<double>;

/// A rank whose connection broke may come back on another.
constexpr std::chrono::seconds to_come_back{3};
constexpr std::chrono::seconds to_introduce_oneself{10};
/// A server that was itself stopped for so long knows nothing of the others.
constexpr std::chrono::seconds own_absence{3};
/// Strangers are looked at so often and no more, however many knock: ranks are heard in between,
/// and a flood takes a small part of a processor. As many are received then as are held: each has
/// that long to show the secret, whatever the crowd.
constexpr std::chrono::milliseconds between_strangers{50};

}  // namespace

WatchdogServer::WatchdogServer(int ranks, std::string secret)
    : listener_(open_listener(port_)), secret_(std::move(secret)), heard_(ranks), closed_(ranks) {
  FOURFOLD_EXPECT(secret_.size() == secret_size);
  world_.ranks.resize(ranks);
}

void WatchdogServer::listen(std::chrono::milliseconds timeout) {
  std::vector<pollfd> ready;
  for (const Peer& peer : peers_) {
    const auto events = static_cast<short>(POLLIN | (peer.connection.has_unsent() ? POLLOUT : 0));
    ready.push_back({.fd = peer.connection.descriptor(), .events = events, .revents = 0});
  }
  const auto rest = std::chrono::ceil<std::chrono::milliseconds>(received_strangers_ +
                                                                 between_strangers - Clock::now());
  if (rest.count() > 0) {
    timeout = std::min(timeout, rest);
  } else {
    ready.push_back({.fd = listener_.get(), .events = POLLIN, .revents = 0});
    for (const Stranger& stranger : strangers_) {
      ready.push_back({.fd = stranger.descriptor(), .events = POLLIN, .revents = 0});
    }
  }
  ::poll(ready.data(), ready.size(), static_cast<int>(timeout.count()));
  const Clock::time_point now = Clock::now();
  if (now - listened_ > own_absence) {
    for (auto& heard : heard_) {
      heard = heard ? std::optional(now) : heard;
    }
  }
  listened_ = now;
  if (now - received_strangers_ >= between_strangers) {
    receive_strangers(now);
  }
  for (Peer& peer : peers_) {
    hear(peer);
  }
  std::erase_if(peers_, [now](const Peer& peer) {
    const bool is_mute = peer.rank < 0 && now - peer.heard > to_introduce_oneself;
    return peer.connection.is_closed() || is_mute;
  });
  poke_the_silent(now);
}

void WatchdogServer::receive_strangers(Clock::time_point now) {
  received_strangers_ = now;
  std::vector<Stranger> still_strange;
  for (Stranger& stranger : strangers_) {
    if (is_still_strange(stranger, now)) {
      still_strange.push_back(std::move(stranger));
    }
  }
  strangers_ = std::move(still_strange);
  for (std::size_t came = 0; came < most_strangers; ++came) {
    Socket socket = accept_from(listener_);
    if (!socket) {
      return;
    }
    if (Stranger stranger(std::move(socket), now); is_still_strange(stranger, now)) {
      strangers_.push_back(std::move(stranger));
    }
    if (strangers_.size() > most_strangers) {
      strangers_.erase(strangers_.begin());
    }
  }
}

/// Admits one that has shown the secret. @return whether nobody knows yet who it is
bool WatchdogServer::is_still_strange(Stranger& stranger, Clock::time_point now) {
  // Ranks that come back while their old connection lasts.
  const std::size_t most_peers = 2 * world_.ranks.size() + 64;
  const Stranger::Standing standing = stranger.hear(secret_, now);
  if (standing == Stranger::Standing::is_known && peers_.size() < most_peers) {
    peers_.push_back({std::move(stranger).admit(), -1, now});
  }
  return standing == Stranger::Standing::waits;
}

void WatchdogServer::hear(Peer& peer) {
  peer.connection.move();
  while (const auto line = peer.connection.next()) {
    if (auto message = rank_message_of(*line)) {
      take(peer, std::move(*message));
    }
  }
  if (peer.connection.is_closed() && peer.rank >= 0) {
    closed_[peer.rank] = Clock::now();
  }
}

void WatchdogServer::take(Peer& peer, RankMessage message) {
  if (message.rank >= std::ssize(world_.ranks)) {
    return;
  }
  RankState& rank = world_.ranks[message.rank];
  if (peer.rank != message.rank) {  // it has not introduced itself yet
    peer.rank = message.rank;
    rank.host = message.host;
    rank.pid = message.pid;
    rank.is_known = true;
    closed_[message.rank].reset();
  }
  peer.heard = Clock::now();
  heard_[message.rank] = peer.heard;
  if (message.beat) {
    rank.beat = std::move(message.beat);
  }
  for (auto& [id, group] : message.groups) {
    const bool all_exist = std::ranges::all_of(
        group.world_ranks, [this](int member) { return member < std::ssize(world_.ranks); });
    if (all_exist) {
      world_.groups[id] = std::move(group);
    }
  }
  rank.has_left = rank.has_left || message.leaves;
  is_being_ended_ = is_being_ended_ || message.ends_all;
  if (message.answers) {
    answers_[message.rank] = std::move(message);
  }
}

/// What is sent to a process that stands still is taken by its machine all the same.
void WatchdogServer::poke_the_silent(Clock::time_point now) {
  constexpr std::chrono::seconds a_while{2};
  if (now - poked_ < std::chrono::seconds(1)) {
    return;
  }
  poked_ = now;
  for (Peer& peer : peers_) {
    if (peer.rank < 0 || now - peer.heard < a_while) {
      continue;
    }
    RankState& rank = world_.ranks[peer.rank];
    rank.is_reachable = peer.connection.is_acknowledged();
    if (rank.is_reachable) {
      peer.connection.send("\n");
      peer.connection.move();
    }
  }
}

WorldState WatchdogServer::state() const {
  WorldState world = world_;
  const Clock::time_point now = Clock::now();
  for (std::size_t rank = 0; rank < world.ranks.size(); ++rank) {
    RankState& state = world.ranks[rank];
    // Whose connection is closed is not silent but away, until it comes back or has ended.
    state.silent_s = heard_[rank] && !closed_[rank] ? Seconds(now - *heard_[rank]).count() : 0;
    state.is_away = closed_[rank] && !state.has_left;
    state.has_ended = state.is_away && now - *closed_[rank] > to_come_back;
  }
  return world;
}

void WatchdogServer::tell_all(const ServerMessage& message) {
  const std::string line = line_of(message);
  for (Peer& peer : peers_) {
    if (peer.rank >= 0) {
      peer.connection.send(line);
      peer.connection.move();
    }
  }
}

bool WatchdogServer::all_have_answered() const {
  return std::ranges::all_of(
      peers_, [this](const Peer& peer) { return peer.rank < 0 || answers_.contains(peer.rank); });
}

bool WatchdogServer::has_unsent() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return peer.connection.has_unsent(); });
}

}  // namespace fourfold::comm
