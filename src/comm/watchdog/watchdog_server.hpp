// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "line_connection.hpp"
#include "message.hpp"
#include "rank_state.hpp"
#include "stranger.hpp"

#include <fourfold/comm/watchdog.hpp>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::comm {

/// Where a server hears all ranks: their connections, and what they have said. Driven by one
/// thread, which calls listen() again and again. Its port is open to all who reach the machine: who
/// does not begin with the run's secret is not listened to, and whatever such strangers do, a
/// bounded part of the time, of the memory and of the connections goes to them.
class WatchdogServer {
 public:
  using Clock = std::chrono::steady_clock;

  /// Connections of strangers that are held at a time; of more, those that came first are closed.
  static constexpr std::size_t most_strangers = 256;

  /// @param secret  of the run
  /// @pre secret.size() == secret_size
  WatchdogServer(int ranks, std::string secret);
  std::uint16_t port() const noexcept { return port_; }

  /// Hears whoever speaks, for `timeout` at most.
  void listen(std::chrono::milliseconds timeout);
  /// All that is known now.
  WorldState state() const;
  /// To every rank that can be reached.
  void tell_all(const ServerMessage& message);
  /// What ranks have answered.
  const std::map<int, RankMessage>& answers() const noexcept { return answers_; }
  /// Whether all have that could.
  bool all_have_answered() const;
  /// Whether a rank has said that it is about to end all.
  bool is_being_ended() const noexcept { return is_being_ended_; }
  /// Whether anything is still on its way out.
  bool has_unsent() const;

 private:
  struct Peer {
    LineConnection connection;
    int rank = -1;  ///< not introduced yet
    Clock::time_point heard;
  };

  void receive_strangers(Clock::time_point now);
  bool is_still_strange(Stranger& stranger, Clock::time_point now);
  void hear(Peer& peer);
  void take(Peer& peer, RankMessage message);
  void poke_the_silent(Clock::time_point now);

  std::uint16_t port_ = 0;
  Socket listener_;
  std::string secret_;
  std::vector<Stranger> strangers_;
  Clock::time_point received_strangers_{};
  std::vector<Peer> peers_;
  WorldState world_;
  std::vector<std::optional<Clock::time_point>> heard_;   ///< by rank
  std::vector<std::optional<Clock::time_point>> closed_;  ///< its connection, by rank
  std::map<int, RankMessage> answers_;
  bool is_being_ended_ = false;
  Clock::time_point listened_ = Clock::now();
  Clock::time_point poked_ = Clock::now();
};

/// The report of a verdict.
std::string report_of(const WorldState& world, const HangDiagnosis& verdict,
                      const std::map<int, RankMessage>& answers);

}  // namespace fourfold::comm
