// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What ranks tell each other, as text.
#pragma once

#include "check.hpp"
#include "directory_check.hpp"
#include "gpu_facts.hpp"
#include "placement_checks.hpp"
#include "rank_facts.hpp"
#include "transport_check.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/communicator.hpp>

#include <span>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// How fast one rank computes while all the others do too.
struct RankSpeed {
  double products_gflops = 0;  ///< matrix products, as the model's linear layers
  double triad_gb_s = 0;       ///< a = b + s c over arrays beyond the caches, as STREAM counts it
  double cores_had = 1;        ///< processor time per second, during the products
};

/// Two windows of `window_s` each, all ranks at once, whatever each gets done in them. Needs
/// kernels::Runtime. Collective.
RankSpeed measure_speed(DType dtype, double window_s, comm::Communicator& world);

/// The better of each figure: what disturbs a rank once does not disturb it always.
RankSpeed better_of(const RankSpeed& a, const RankSpeed& b);

/// Ranks with a figure that stands out.
bool has_slow_ones(std::span<const RankSpeed> speeds);

Check products_check(const Ranks& ranks, std::span<const RankSpeed> speeds, DType dtype);
Check bandwidth_check(const Ranks& ranks, std::span<const RankSpeed> speeds);

/// What a node found out about its clock and about names.
struct ClockFacts {
  double offset_s = 0;       ///< its time of day before the first node's
  std::string name_problem;  ///< of the names that it has to find others by; empty: none
};

/// Collective over `leaders`, the first ranks of the nodes.
/// @param hosts     of the leaders, as MPI names them
/// @param machines  of the leaders, comm::machine_identity()
std::vector<ClockFacts> measure_clocks(const std::vector<std::string>& hosts,
                                       const std::vector<std::string>& machines,
                                       comm::Communicator& leaders);

/// Clocks against their median: the first node's own may be the wrong one.
Check clock_check(const Ranks& ranks, std::span<const ClockFacts> facts);
Check names_check(const Ranks& ranks, std::span<const ClockFacts> facts);

/// A record as text and back: of RankFacts, RankSpeed, ClockFacts, NodeGpus, and of lists of
/// LineSpeed, LinkSpeed and DirectoryFacts.
template <class Record>
std::string to_text(const Record& record);
/// @throws UserError (config): a rank that runs another version has other records
template <class Record>
void from_text(const std::string& text, Record& record);

/// Every rank's record on all of them, in rank order. Collective.
template <class Record>
std::vector<Record> gather(comm::Communicator& communicator, const Record& own) {
  std::vector<Record> all;
  for (const std::string& text : comm::all_gather_text(communicator, to_text(own))) {
    from_text(text, all.emplace_back());
  }
  return all;
}

/// Whether something holds on all ranks. Collective.
inline bool holds_on_all(comm::Communicator& communicator, bool here) {
  const std::int64_t own = here;
  return comm::all_reduce_scalar(communicator, own, comm::ReduceOp::min) == 1;
}

}  // namespace fourfold::doctor
