// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_files.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/base/whole_path.hpp>
#include <fourfold/data/dataset.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

namespace fourfold::train_program {
namespace {
namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// The folder in which this one lies, or the nearest above that is there. Not itself: the job may
/// have made it a moment ago, which clients of NFS need not know yet.
fs::path folder_around(const fs::path& folder) {
  fs::path above = whole_path(folder).parent_path();
  while (!is_there(above) && above.has_relative_path()) {
    above = above.parent_path();
  }
  return above;
}

/// A name of token files is one of a file, or of several without what follows the dot.
void add_token_files(std::span<const std::string> names, std::vector<std::string>& places) {
  for (const std::string& name : data::expand_patterns(names)) {
    for (const std::string& file : {name, name + ".bin"}) {
      if (is_there(file)) {
        places.push_back(whole_path(file).string());
      }
    }
  }
}

/// What rank 0 sees of all that the nodes have in common.
std::vector<std::string> places_of(const runfile::RunConfig& config) {
  std::vector<std::string> places{folder_around(config.log.dir).string(),
                                  folder_around(config.checkpoint.dir).string()};
  try {
    add_token_files(config.data.train, places);
    add_token_files(config.data.validation, places);
  } catch (const UserError&) {  // what cannot be found at all is told by who opens it
  }
  if (is_there(config.data.tokenizer)) {
    places.push_back(whole_path(config.data.tokenizer).string());
  }
  // Line by line they go to the others.
  std::erase_if(places, [](const std::string& place) {
    return place.find('\n') != std::string::npos || !is_there(place);
  });
  return places;
}

/// The first that this rank does not see, also when it looks again; empty: it sees all.
std::string not_seen(const std::string& places) {
  constexpr int looks = 3;
  std::istringstream lines(places);
  for (std::string place; std::getline(lines, place);) {
    int look = 1;
    while (::access(place.c_str(), R_OK) != 0) {
      if (look++ == looks) {
        return place;
      }
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }
  return {};
}

}  // namespace

BlindNodes find_blind_nodes(const std::optional<runfile::RunConfig>& config,
                            const std::optional<comm::Failure>& failure, const std::string& host,
                            comm::Communicator& world) {
  std::string places;
  if (world.rank() == 0 && config) {
    places = fmt::format("{}\n", fmt::join(places_of(*config), "\n"));
  }
  places = comm::broadcast_text(world, places, 0);
  std::string problem;
  if (failure) {
    problem = failure->is_users && failure->code == ExitCode::config ? failure->message : "";
  } else if (const std::string place = not_seen(places); !place.empty()) {
    problem = format_message("does not see {}", place);
  }
  const bool is_known = !places.empty();  // what rank 0 itself could not read is everybody's
  if (!is_known || comm::all_reduce_scalar(world, std::int64_t{problem.empty() ? 0 : 1},
                                           comm::ReduceOp::max) == 0) {
    return {};
  }
  const auto hosts = comm::all_gather_text(world, host);
  const auto problems = comm::all_gather_text(world, problem);
  BlindNodes blind;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    if (problems[rank].empty()) {
      continue;
    }
    if (blind.hosts.empty()) {
      blind.reason = format_message("rank {} on {}: {}", rank, hosts[rank], problems[rank]);
    }
    if (std::ranges::count(blind.hosts, hosts[rank]) == 0) {
      blind.hosts.push_back(hosts[rank]);
    }
  }
  const std::set<std::string> all(hosts.begin(), hosts.end());
  return 2 * blind.hosts.size() < all.size() ? blind : BlindNodes{};
}

}  // namespace fourfold::train_program
