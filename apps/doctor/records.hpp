// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What ranks tell each other, as text.
#pragma once

#include "clock_check.hpp"
#include "directory_check.hpp"
#include "gpu_facts.hpp"
#include "rank_facts.hpp"
#include "speed_check.hpp"
#include "transport_check.hpp"

#include <fourfold/comm/communicator.hpp>

#include <string>
#include <vector>

namespace fourfold::doctor {

std::string to_text(const RankFacts& record);
std::string to_text(const RankSpeed& record);
std::string to_text(const std::vector<LineSpeed>& record);
std::string to_text(const std::vector<LinkSpeed>& record);
std::string to_text(const std::vector<DirectoryFacts>& record);
std::string to_text(const ClockFacts& record);
std::string to_text(const NodeGpus& record);

void from_text(const std::string& text, RankFacts& record);
void from_text(const std::string& text, RankSpeed& record);
void from_text(const std::string& text, std::vector<LineSpeed>& record);
void from_text(const std::string& text, std::vector<LinkSpeed>& record);
void from_text(const std::string& text, std::vector<DirectoryFacts>& record);
void from_text(const std::string& text, ClockFacts& record);
void from_text(const std::string& text, NodeGpus& record);

/// Every rank's record on all of them, in rank order. Collective.
template <class Record>
std::vector<Record> gather(comm::Communicator& communicator, const Record& own) {
  std::vector<Record> all;
  for (const std::string& text : comm::all_gather_text(communicator, to_text(own))) {
    from_text(text, all.emplace_back());
  }
  return all;
}

}  // namespace fourfold::doctor
