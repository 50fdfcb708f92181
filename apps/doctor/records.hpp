// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What ranks tell each other, as text.
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// A record as text and back: of RankFacts, NodeFacts, and of a list of LineSpeed.
template <class Record>
std::string to_text(const Record& record);
/// @throws UserError (config): a rank that runs another version has other records
template <class Record>
Record from_text(const std::string& text);

/// Every rank's record on all of them, in rank order. Collective.
template <class Record>
std::vector<Record> gather(comm::Communicator& communicator, const Record& own) {
  std::vector<Record> all;
  for (const std::string& text : comm::all_gather_text(communicator, to_text(own))) {
    all.push_back(from_text<Record>(text));
  }
  return all;
}

/// Whether something holds on all ranks. Collective.
inline bool holds_on_all(comm::Communicator& communicator, bool here) {
  const std::int64_t own = here;
  return comm::all_reduce_scalar(communicator, own, comm::ReduceOp::min) == 1;
}

}  // namespace fourfold::doctor
