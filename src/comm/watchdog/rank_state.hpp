// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/flight_recorder.hpp>

#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::comm {

/// An operation as one rank tells others of it.
struct ToldCall {
  Operation operation = Operation::barrier;
  std::uint64_t group = 0;  ///< id of its communicator
  std::uint64_t sequence = 0;
  std::int64_t bytes = 0;
  int peer = -1;          ///< rank in the communicator
  std::string site = {};  ///< "trainer.cpp:300"
  double since_s = 0;     ///< that it was entered, or waited for, when this was told
  bool is_over = false;   ///< it was left
};

/// The collectives that a rank has called on a communicator.
struct ToldCalls {
  std::uint64_t calls = 0;
  std::array<CallsDigest, 2> digests = {};
};

/// What a rank says about itself once a second.
struct Beat {
  std::map<std::uint64_t, ToldCalls> collectives = {};  ///< by group
  std::optional<ToldCall> waiting = {};                 ///< what it blocks in
  std::optional<ToldCall> last = {};                    ///< the newest call
  std::string activity = {};
  double activity_s = 0;
  std::string fault = {};  ///< why its communication has failed; empty: it has not
  double fault_s = 0;      ///< since when
};

/// A communicator, told by the lowest of its ranks.
struct ToldGroup {
  std::string name;
  std::vector<int> world_ranks;
};

/// A rank as the server sees it.
struct RankState {
  std::string host = {};
  long pid = 0;
  bool is_known = false;     ///< it has introduced itself
  bool has_left = false;     ///< it said good-bye, or that it ends all
  bool is_away = false;      ///< its connection is closed, and it had not
  bool has_ended = false;    ///< and it does not come back
  double silent_s = 0;       ///< since its last word
  bool is_reachable = true;  ///< its machine takes what is sent to it
  std::optional<Beat> beat = {};
};

/// All that is known of a run, of one moment.
struct WorldState {
  std::vector<RankState> ranks;  ///< by rank in the world
  std::map<std::uint64_t, ToldGroup> groups;

  /// What a rank has said last; nullptr: nothing yet.
  const Beat* beat_of(int rank) const {
    const RankState& state = ranks[rank];
    return state.beat ? &*state.beat : nullptr;
  }
  /// The call that a rank blocks in; nullptr: it has told of none.
  const ToldCall* waiting(int rank) const {
    const Beat* const beat = beat_of(rank);
    return beat != nullptr && beat->waiting ? &*beat->waiting : nullptr;
  }
  /// What a rank has called on a communicator; nullptr: it has not told.
  const ToldCalls* calls_on(int rank, std::uint64_t group) const {
    const Beat* const beat = beat_of(rank);
    return beat == nullptr ? nullptr : value_of(beat->collectives, group);
  }
  /// nullptr: nobody has told of it.
  const ToldGroup* group(std::uint64_t id) const { return value_of(groups, id); }
  /// The rank in the world of a call's peer; nothing: it has none, or none that is known.
  std::optional<int> peer_of(const ToldCall& call) const {
    const ToldGroup* const its = group(call.group);
    return its != nullptr && call.peer >= 0 && call.peer < std::ssize(its->world_ranks)
               ? std::optional(its->world_ranks[call.peer])
               : std::nullopt;
  }

 private:
  template <class Value>
  static const Value* value_of(const std::map<std::uint64_t, Value>& map, std::uint64_t key) {
    const auto found = map.find(key);
    return found == map.end() ? nullptr : &found->second;
  }
};

}  // namespace fourfold::comm
