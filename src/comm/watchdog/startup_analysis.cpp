// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "startup_analysis.hpp"

#include "hang_analysis.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

namespace fourfold::comm {
namespace {

/// Takes the number that `text` begins with off it. Counts, so nothing below 0.
std::optional<int> take_number(std::string_view& text) {
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) {
    return std::nullopt;
  }
  text.remove_prefix(stop - text.data());
  return number;
}

bool take(std::string_view& text, std::string_view word) {
  const bool begins = text.starts_with(word);
  text.remove_prefix(begins ? word.size() : 0);
  return begins;
}

/// "2(x3),1" as 2, 2, 2, 1. Empty: it is not that, or of more than `most` nodes.
std::vector<int> counts_of(std::string_view text, std::int64_t most) {
  std::vector<int> counts;
  do {
    const auto tasks = take_number(text);
    std::optional<int> times = 1;
    if (take(text, "(x")) {
      times = take_number(text);
      if (!take(text, ")")) {
        return {};
      }
    }
    if (!tasks || !times || std::ssize(counts) + *times > most) {
      return {};
    }
    counts.insert(counts.end(), *times, *tasks);
  } while (take(text, ","));
  return text.empty() ? counts : std::vector<int>{};
}

/// Over nodes, the first of its parts.
std::string_view distribution_over_nodes(std::string_view distribution) {
  return distribution.empty() ? "block" : distribution.substr(0, distribution.find_first_of(":,"));
}

/// Whether the ranks that `arrival` has beside it are those of one node, and all of them.
bool agrees(const std::vector<std::string>& nodes, const Arrival& arrival) {
  std::set<int> beside;
  for (const int rank : arrival.beside) {
    if (rank < 0 || rank >= std::ssize(nodes)) {
      return false;
    }
    beside.insert(rank);
  }
  const std::string& node = nodes[*beside.begin()];
  for (int rank = 0; rank < std::ssize(nodes); ++rank) {
    if ((nodes[rank] == node) != beside.contains(rank)) {
      return false;
    }
  }
  return true;
}

/// "rank 3 on node2".
std::string place_text(const std::vector<int>& ranks, const std::string& host) {
  return format_message("{}{}", ranks_text(ranks), host.empty() ? "" : " on " + host);
}

std::string reason_of_all(std::size_t ranks, double limit_s) {
  return ranks == 1 ? format_message(
                          "MPI_Init has not come back within {:g} s (what runs beside this "
                          "process, the launcher does not tell); look for a process that stands "
                          "still before it, or raise watchdog.start_s if this start is only slow",
                          limit_s)
                    : format_message(
                          "all {} ranks have come to MPI_Init, and it has not come back within "
                          "{:g} s (ranks that cannot reach each other over the network?)\n  let "
                          "`fourfold doctor` look at the nodes, or raise watchdog.start_s if this "
                          "start is only slow",
                          ranks, limit_s);
}

std::string reason_of(const HangDiagnosis& verdict, double limit_s) {
  constexpr std::size_t shown = 8;
  std::map<std::string, std::vector<int>> missing;
  for (const HangDiagnosis::SuspectRank& one : verdict.suspects) {
    missing[one.host].push_back(one.rank);
  }
  std::vector<std::string> lines;
  for (const auto& [host, ranks] : missing) {
    if (lines.size() == shown) {
      lines.push_back(format_message("... ({} ranks in all)", verdict.suspects.size()));
      break;
    }
    lines.push_back(format_message(
        "{} {} not come to MPI_Init within {:g} s, or stand{} still in it or right after it",
        place_text(ranks, host), ranks.size() == 1 ? "has" : "have", limit_s,
        ranks.size() == 1 ? "s" : ""));
  }
  lines.push_back(format_message("{} wait{} there", ranks_text(verdict.waiting),
                                 verdict.waiting.size() == 1 ? "s" : ""));
  lines.emplace_back(
      "look at what has not come (a process that is stopped, a file system that does not answer on "
      "that node?), or raise watchdog.start_s if this start is only slow");
  return format_message("{}", fmt::join(lines, "\n  "));
}

}  // namespace

std::vector<std::string> nodes_of_ranks(const std::vector<std::string>& nodes,
                                        std::string_view tasks_per_node,
                                        std::string_view distribution, int ranks) {
  std::vector<int> left = counts_of(tasks_per_node, std::ssize(nodes));
  const std::string_view over_nodes = distribution_over_nodes(distribution);
  if (nodes.empty() || left.size() != nodes.size() ||
      std::accumulate(left.begin(), left.end(), std::int64_t{0}) != ranks ||
      (over_nodes != "block" && over_nodes != "cyclic")) {
    return {};
  }
  std::vector<std::string> by_rank;
  while (std::ssize(by_rank) < ranks) {
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const int dealt = over_nodes == "block" ? left[node] : std::min(left[node], 1);
      by_rank.insert(by_rank.end(), dealt, nodes[node]);
      left[node] -= dealt;
    }
  }
  return by_rank;
}

WorldState state_of_start(int ranks, double limit_s, const std::map<int, Arrival>& waiting,
                          const std::vector<std::string>& nodes) {
  WorldState world;
  world.ranks.resize(ranks);
  bool can_be_believed = std::ssize(nodes) == ranks;
  std::set<std::string> looked_at;  // of thousands of ranks those of one host say the same
  for (const auto& [rank, arrival] : waiting) {
    if (can_be_believed && !arrival.beside.empty() && looked_at.insert(arrival.host).second) {
      can_be_believed = agrees(nodes, arrival);
    }
  }
  for (int rank = 0; can_be_believed && rank < ranks; ++rank) {
    world.ranks[rank].host = nodes[rank];
  }
  for (const auto& [rank, arrival] : waiting) {
    for (const int neighbour : arrival.beside) {
      if (0 <= neighbour && neighbour < ranks) {
        world.ranks[neighbour].host = arrival.host;
      }
    }
  }
  for (const auto& [rank, arrival] : waiting) {
    if (0 <= rank && rank < ranks) {
      world.ranks[rank] = {.host = arrival.host,
                           .pid = arrival.pid,
                           .is_known = true,
                           .beat = Beat{.activity = "MPI_Init", .activity_s = limit_s}};
    }
  }
  return world;
}

HangDiagnosis analyse_start(const WorldState& start, double limit_s) {
  HangDiagnosis verdict{.kind = HangDiagnosis::Kind::not_started};
  for (int rank = 0; rank < std::ssize(start.ranks); ++rank) {
    if (start.ranks[rank].is_known) {
      verdict.waiting.push_back(rank);
    } else if (start.ranks.size() > 1) {
      verdict.suspects.push_back(suspect(
          start, rank,
          format_message(
              "has not come to MPI_Init within {:g} s, or stands still in it or right after it",
              limit_s)));
    }
  }
  verdict.reason = verdict.suspects.empty() ? reason_of_all(start.ranks.size(), limit_s)
                                            : reason_of(verdict, limit_s);
  return verdict;
}

}  // namespace fourfold::comm
