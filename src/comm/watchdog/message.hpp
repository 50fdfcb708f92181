// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rank_state.hpp"

#include <fourfold/comm/flight_recorder.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::comm {

// What watches tell each other: lines of JSON. A line comes from the network, and is believed only
// as far as it has the shape that it should have.

/// What a rank tells its servers of itself, after a connection's opening (stranger.hpp) and then
/// whenever there is something to tell.
struct RankMessage {
  int rank = 0;
  std::string host = {};
  long pid = 0;
  std::map<std::uint64_t, ToldGroup> groups = {};  ///< those that it is the lowest rank of, once
  std::optional<Beat> beat = {};
  bool leaves = false;                  ///< it is about to leave,
  bool ends_all = false;                ///< or to end all ranks by itself
  bool answers = false;                 ///< with what follows, as the server has asked:
  std::vector<ToldCall> calls = {};     ///< its last calls, oldest first
  std::vector<std::string> stack = {};  ///< where its main thread is
};

/// What a server tells the ranks once it has decided: first to answer and to wait for the next,
/// then to end with this code.
struct ServerMessage {
  std::optional<int> end_code = {};
};

/// With its end of line.
std::string line_of(const RankMessage& message);
std::string line_of(const ServerMessage& message);
/// Nothing when the line is no such message.
std::optional<RankMessage> rank_message_of(std::string_view line);
std::optional<ServerMessage> server_message_of(std::string_view line);

/// What a snapshot says, as of now.
Beat beat_of(const FlightSnapshot& snapshot);
std::vector<ToldCall> calls_of(const FlightSnapshot& snapshot);

}  // namespace fourfold::comm
