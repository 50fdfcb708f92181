// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rank_state.hpp"

#include <fourfold/comm/flight_recorder.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace fourfold::comm {

// What watches tell each other: lines of JSON, each an object with a "type". A line comes from the
// network, and is believed only as far as it has the shape that it should have.

/// The first line of a connection, after its opening (stranger.hpp).
struct Hello {
  int rank = 0;
  std::string host;
  long pid = 0;
};
/// A communicator that this rank is the lowest of.
struct NewGroup {
  std::uint64_t id = 0;
  ToldGroup group;
};
/// The rank is about to leave, or to end all ranks by itself.
struct Bye {
  bool ends_all = false;
};
/// The server has decided: tell all you know, then wait for End.
struct Tell {};
/// The answer: its last calls, oldest first, and where its main thread is.
struct Told {
  std::vector<ToldCall> calls;
  std::vector<std::string> stack;
};
/// End now, with this code.
struct End {
  int code = 0;
};

using Message = std::variant<Hello, NewGroup, Beat, Bye, Tell, Told, End>;

/// With its end of line.
std::string line_of(const Message& message);
/// Nothing when the line is no message.
std::optional<Message> message_of(std::string_view line);

/// What a snapshot says, as of now.
Beat beat_of(const FlightSnapshot& snapshot);
std::vector<ToldCall> calls_of(const FlightSnapshot& snapshot);

}  // namespace fourfold::comm
