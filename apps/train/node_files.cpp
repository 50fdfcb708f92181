// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_files.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/data/dataset.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <compare>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <map>
#include <span>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

namespace fourfold::train_program {
namespace {
namespace fs = std::filesystem;

/// A name of the run file, and how much of it a rank sees: the more, the better.
struct Sight {
  std::string missing;  ///< of what it does not
  int seen = 0;
};

/// A name is one of a file, a pattern, or what several files have before the dot.
bool is_seen(const std::string& name) {
  const auto can_be_read = [](const std::string& file) {
    return ::access(file.c_str(), R_OK) == 0;
  };
  try {
    const std::vector<std::string> files = data::expand_patterns(std::span(&name, 1));
    return !files.empty() && std::ranges::all_of(files, [&](const std::string& file) {
      return can_be_read(file) || can_be_read(file + ".bin");
    });
  } catch (const UserError&) {  // a pattern that nothing matches
    return false;
  }
}

std::vector<Sight> sights_of_files(const std::vector<std::string>& names) {
  std::vector<Sight> sights(names.size());
  constexpr int looks = 3;  // a mount on demand
  for (int look = 1; look <= looks; ++look) {
    bool all_seen = true;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (sights[i].seen == 0) {
        sights[i] = is_seen(names[i]) ? Sight{.missing = "", .seen = 1} : Sight{names[i], 0};
      }
      all_seen = all_seen && sights[i].seen > 0;
    }
    if (all_seen || look == looks) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  return sights;
}

/// How many of the folders that this one lies in are there. Not itself, nor what lies in `made`:
/// the job may have made that a moment ago, which clients of NFS need not know yet.
Sight sight_of_folders_around(const fs::path& folder, const fs::path& made) {
  Sight sight;
  fs::path above;
  for (const fs::path& part : whole_path(folder).parent_path()) {
    above /= part;
    std::error_code ignored;
    if (above == whole_path(made)) {
      break;
    }
    if (!fs::exists(above, ignored)) {
      sight.missing = above.string();
      break;
    }
    ++sight.seen;
  }
  return sight;
}

/// In the same order on all ranks.
std::vector<Sight> sights_of(const runfile::RunConfig& config) {
  std::vector<Sight> sights{sight_of_folders_around(config.log.dir, config.log.dir),
                            sight_of_folders_around(config.checkpoint.dir, config.log.dir)};
  for (const auto* const names : {&config.data.train, &config.data.validation}) {
    std::ranges::move(sights_of_files(*names), std::back_inserter(sights));
  }
  return sights;
}

FolderPlace place_of(const fs::path& folder) {
  struct statfs system {};
  struct stat found {};
  for (fs::path at = whole_path(folder);; at = at.parent_path()) {
    if (::statfs(at.c_str(), &system) == 0 && ::stat(at.c_str(), &found) == 0) {
      FolderPlace place;
      place.kind = system.f_type;
      place.inode = found.st_ino;
      return place;
    }
    if (errno != ENOENT || at == at.parent_path()) {
      return {};
    }
  }
}

/// Of each folder whether this host has it where the others do (is_elsewhere). Collective; nothing
/// on a rank that has read no run file.
std::vector<Sight> sights_of_file_systems(const std::optional<runfile::RunConfig>& config,
                                          std::span<const std::string> hosts,
                                          comm::Communicator& world) {
  std::vector<std::string> folders;
  std::vector<FolderPlace> mine;
  std::string text;
  if (config) {
    folders = {config->log.dir, config->checkpoint.dir};
    for (const std::string& folder : folders) {
      mine.push_back(place_of(folder));
      text += fmt::format("{} {} ", mine.back().kind, mine.back().inode);
    }
  }
  std::map<std::string, std::vector<FolderPlace>> places_of_hosts;
  const auto texts = comm::all_gather_text(world, text);
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    std::istringstream words(texts[rank]);
    std::vector<FolderPlace>& places = places_of_hosts[hosts[rank]];
    places.clear();
    for (FolderPlace place; words >> place.kind >> place.inode;) {
      places.push_back(place);
    }
  }
  std::vector<Sight> sights;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    std::vector<FolderPlace> of_hosts;
    for (const auto& [host, places] : places_of_hosts) {
      of_hosts.push_back(i < places.size() ? places[i] : FolderPlace{});
    }
    sights.push_back({.missing = "the file system of " + folders[i],
                      .seen = is_elsewhere(mine[i], of_hosts) ? 0 : 1});
  }
  return sights;
}

std::vector<int> numbers_in(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<int>(words), {}};
}

/// How much each host sees of each name: what the rank on it that sees least does. Nothing for one
/// that has read no run file.
using HostSights = std::map<std::string, std::vector<int>>;

HostSights sights_of_hosts(std::span<const std::string> hosts,
                           std::span<const std::string> sights_of_ranks) {
  HostSights of_hosts;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const std::vector<int> its = numbers_in(sights_of_ranks[rank]);
    const auto [found, is_first] = of_hosts.try_emplace(hosts[rank], its);
    std::vector<int>& least = found->second;
    if (!is_first) {
      least.resize(std::min(least.size(), its.size()));
      std::ranges::transform(least, its, least.begin(),
                             [](int one, int other) { return std::min(one, other); });
    }
  }
  return of_hosts;
}

/// Those that see less of some name than more than half of the hosts.
std::vector<std::string> blind_hosts(const HostSights& sights) {
  std::vector<std::vector<int>> sorted;
  for (const auto& [host, its] : sights) {
    sorted.push_back(its);
  }
  const std::size_t names = std::ranges::max(sorted, {}, &std::vector<int>::size).size();
  std::vector<std::string> blind;
  for (const auto& [host, its] : sights) {
    for (std::size_t i = 0; i < names; ++i) {
      const auto sees_more = [&](const std::vector<int>& other) {
        return i < other.size() && (i >= its.size() || other[i] > its[i]);
      };
      if (2 * std::ranges::count_if(sorted, sees_more) > std::ssize(sorted)) {
        blind.push_back(host);
        break;
      }
    }
  }
  return blind;
}

}  // namespace

bool is_elsewhere(const FolderPlace& mine, std::span<const FolderPlace> of_hosts) {
  std::map<std::int64_t, std::vector<std::int64_t>> inodes_by_kind;
  for (const FolderPlace& place : of_hosts) {
    inodes_by_kind[place.kind].push_back(place.inode);
  }
  const auto usual = std::ranges::max_element(inodes_by_kind, {},
                                              [](const auto& one) { return one.second.size(); });
  return usual != inodes_by_kind.end() && usual->first != 0 &&
         2 * usual->second.size() > of_hosts.size() && mine.kind != usual->first &&
         std::ranges::count(usual->second, mine.inode) == 0;
}

BlindNodes find_blind_nodes(const std::optional<runfile::RunConfig>& config,
                            const std::optional<comm::Failure>& failure, const std::string& host,
                            comm::Communicator& world) {
  std::vector<Sight> sights;
  if (config) {
    sights = sights_of(*config);
  }
  const auto hosts = comm::all_gather_text(world, host);
  std::ranges::move(sights_of_file_systems(config, hosts, world), std::back_inserter(sights));
  const bool is_files_fault = !failure || (failure->is_users && failure->code == ExitCode::config);
  std::vector<int> seen;
  std::ranges::transform(sights, std::back_inserter(seen), &Sight::seen);
  const auto seen_by_rank = comm::all_gather_text(world, fmt::format("{}", fmt::join(seen, " ")));
  // One that failed for another reason is told as it is.
  const std::int64_t others = is_files_fault ? 0 : 1;
  if (comm::all_reduce_scalar(world, others, comm::ReduceOp::max) != 0 ||
      std::ranges::count(seen_by_rank, seen_by_rank.front()) == std::ssize(seen_by_rank)) {
    return {};
  }
  const HostSights sights_by_host = sights_of_hosts(hosts, seen_by_rank);
  BlindNodes blind{.hosts = blind_hosts(sights_by_host)};
  if (blind.hosts.empty() || 2 * blind.hosts.size() >= sights_by_host.size()) {
    return {};
  }
  const auto is_blind = [&](const std::string& one) {
    return std::ranges::count(blind.hosts, one) > 0;
  };
  const auto first = std::ranges::find_if(hosts, is_blind);
  while (is_blind(hosts[blind.first_seeing_rank])) {
    ++blind.first_seeing_rank;
  }
  std::string problem = failure ? failure->message : "";
  for (std::size_t i = 0; i < sights.size() && problem.empty(); ++i) {
    const bool is_seen_better = std::ranges::any_of(sights_by_host, [&](const auto& one) {
      return i < one.second.size() && one.second[i] > sights[i].seen;
    });
    problem = is_seen_better ? "does not see " + sights[i].missing : "";
  }
  const auto problems = comm::all_gather_text(world, problem);
  for (std::size_t rank = 0; rank < hosts.size() && blind.reason.empty(); ++rank) {
    if (hosts[rank] == *first && !problems[rank].empty()) {
      blind.reason = format_message("rank {} on {}: {}", rank, hosts[rank], problems[rank]);
    }
  }
  return blind;
}

}  // namespace fourfold::train_program
