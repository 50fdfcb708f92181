// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watch/court.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace fourfold::comm {
namespace {

using Seconds = std::chrono::duration<double>;

/// A rank whose connection broke may come back on another.
constexpr std::chrono::seconds to_come_back{3};
constexpr std::chrono::seconds to_introduce_oneself{10};
/// A judge that was itself stopped for so long knows nothing of the others.
constexpr std::chrono::seconds own_absence{3};

}  // namespace

Court::Court(int ranks, std::string token)
    : token_(std::move(token)),
      heard_(static_cast<std::size_t>(ranks)),
      closed_(static_cast<std::size_t>(ranks)) {
  world_.ranks.resize(static_cast<std::size_t>(ranks));
}

void Court::listen(std::chrono::milliseconds timeout) {
  std::vector<pollfd> ready{{.fd = listener_.descriptor(), .events = POLLIN, .revents = 0}};
  for (const Voice& voice : voices_) {
    const auto events = static_cast<short>(POLLIN | (voice.connection.has_unsent() ? POLLOUT : 0));
    ready.push_back({.fd = voice.connection.descriptor(), .events = events, .revents = 0});
  }
  ::poll(ready.data(), ready.size(), static_cast<int>(timeout.count()));
  const Clock::time_point now = Clock::now();
  if (now - listened_ > own_absence) {
    for (auto& heard : heard_) {
      heard = heard ? std::optional(now) : heard;
    }
  }
  listened_ = now;
  accept_all();
  for (Voice& voice : voices_) {
    hear(voice);
  }
  std::erase_if(voices_, [now](const Voice& voice) {
    const bool is_stranger = voice.rank < 0 && now - voice.heard > to_introduce_oneself;
    return voice.connection.is_closed() || is_stranger;
  });
  poke_the_silent(now);
}

void Court::accept_all() {
  // Ranks that come back while their old connection lasts, and some strangers; not a flood of them.
  const std::size_t most_voices = 2 * world_.ranks.size() + 64;
  while (auto connection = listener_.accept()) {
    if (voices_.size() >= most_voices) {
      continue;
    }
    voices_.push_back({std::move(*connection), -1, Clock::now()});
  }
}

void Court::hear(Voice& voice) {
  voice.connection.move();
  while (const auto line = voice.connection.next()) {
    if (auto message = message_of(*line)) {
      take(voice, std::move(*message));
    }
  }
  if (voice.connection.is_closed() && voice.rank >= 0) {
    closed_[static_cast<std::size_t>(voice.rank)] = Clock::now();
  }
}

void Court::introduce(Voice& voice, const Hello& hello) {
  if (hello.token != token_ || hello.rank < 0 || hello.rank >= std::ssize(world_.ranks)) {
    return;
  }
  voice.rank = hello.rank;
  RankState& rank = world_.ranks[static_cast<std::size_t>(hello.rank)];
  rank.host = hello.host;
  rank.pid = hello.pid;
  rank.is_known = true;
  closed_[static_cast<std::size_t>(hello.rank)].reset();
}

void Court::take(Voice& voice, Message message) {
  if (const auto* const hello = std::get_if<Hello>(&message)) {
    introduce(voice, *hello);
  }
  if (voice.rank < 0) {
    return;  // a stranger
  }
  const auto index = static_cast<std::size_t>(voice.rank);
  voice.heard = Clock::now();
  heard_[index] = voice.heard;
  if (auto* const beat = std::get_if<Beat>(&message)) {
    world_.ranks[index].beat = std::move(*beat);
  } else if (auto* const group = std::get_if<NewGroup>(&message)) {
    const bool all_exist = std::ranges::all_of(group->group.world_ranks, [this](int rank) {
      return rank >= 0 && rank < std::ssize(world_.ranks);
    });
    if (all_exist) {
      world_.groups[group->id] = std::move(group->group);
    }
  } else if (std::holds_alternative<Bye>(message)) {
    world_.ranks[index].has_left = true;
  } else if (auto* const told = std::get_if<Told>(&message)) {
    answers_[voice.rank] = std::move(*told);
  }
}

/// What is sent to a process that stands still is taken by its machine all the same.
void Court::poke_the_silent(Clock::time_point now) {
  constexpr std::chrono::seconds a_while{2};
  if (now - poked_ < std::chrono::seconds(1)) {
    return;
  }
  poked_ = now;
  for (Voice& voice : voices_) {
    if (voice.rank < 0 || now - voice.heard < a_while) {
      continue;
    }
    RankState& rank = world_.ranks[static_cast<std::size_t>(voice.rank)];
    rank.is_reachable = voice.connection.is_acknowledged();
    if (rank.is_reachable) {
      voice.connection.send("\n");
      voice.connection.move();
    }
  }
}

WorldState Court::state() const {
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

void Court::tell_all(const Message& message) {
  const std::string line = line_of(message);
  for (Voice& voice : voices_) {
    if (voice.rank >= 0) {
      voice.connection.send(line);
      voice.connection.move();
    }
  }
}

bool Court::all_have_answered() const {
  return std::ranges::all_of(voices_, [this](const Voice& voice) {
    return voice.rank < 0 || answers_.contains(voice.rank);
  });
}

bool Court::has_unsent() const {
  return std::ranges::any_of(voices_,
                             [](const Voice& voice) { return voice.connection.has_unsent(); });
}

}  // namespace fourfold::comm
