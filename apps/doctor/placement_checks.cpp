// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "placement_checks.hpp"

#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

namespace fourfold::doctor {
namespace {

std::map<std::string, int> ranks_by_node(const Ranks& ranks) {
  std::map<std::string, int> counts;
  for (const std::string& node : ranks.nodes) {
    ++counts[node];
  }
  return counts;
}

/// Ranks with nowhere else to go, and the cores that they have together.
struct Oversubscription {
  std::vector<int> ranks;
  std::set<int> cores;
  int threads = 0;
  bool fits() const { return threads <= std::ssize(cores); }
};

/// Of each set of cores that some rank has: the ranks that have no other (Hall's condition, for the
/// sets that launchers make).
std::vector<Oversubscription> oversubscriptions_of(const Ranks& ranks, const Machine& machine) {
  std::map<std::string, std::set<int>> cores_of_list;
  for (const int rank : machine.ranks) {
    const std::string& list = ranks.facts[rank].cores;
    const std::vector<int> cores = cores_in(list);
    cores_of_list.try_emplace(list, cores.begin(), cores.end());
  }
  std::vector<Oversubscription> groups;
  for (const auto& [list, cores] : cores_of_list) {
    Oversubscription group{.ranks = {}, .cores = cores};
    for (const int rank : machine.ranks) {
      const RankFacts& facts = ranks.facts[rank];
      const std::set<int>& own = cores_of_list.at(facts.cores);
      if (!own.empty() && std::ranges::includes(cores, own)) {
        group.ranks.push_back(rank);
        group.threads += facts.threads;
      }
    }
    if (!group.ranks.empty()) {
      groups.push_back(std::move(group));
    }
  }
  std::ranges::sort(groups, {}, [](const Oversubscription& group) { return group.cores.size(); });
  return groups;
}

std::string oversubscription_text(const Oversubscription& group, const Machine& machine) {
  return fmt::format("{} {} on {} {} with {} on {}", group.ranks.size() == 1 ? "rank" : "ranks",
                     first_of(group.ranks), machine.str(),
                     group.ranks.size() == 1 ? "computes" : "compute",
                     counted(group.threads, "thread"), counted(group.cores.size(), "core"));
}

/// Those that do not fit, but for what only contains such a one.
std::vector<Oversubscription> too_many(const Ranks& ranks, const Machine& machine) {
  std::vector<Oversubscription> found;
  for (Oversubscription& group : oversubscriptions_of(ranks, machine)) {
    const bool contains_one = std::ranges::any_of(found, [&](const Oversubscription& smaller) {
      return std::ranges::includes(group.cores, smaller.cores);
    });
    if (!group.fits() && !contains_one) {
      found.push_back(std::move(group));
    }
  }
  return found;
}

/// What has to be the same on all ranks.
void compare(const Ranks& ranks, const char* what, std::string RankFacts::*value, Check& check) {
  std::map<std::string, std::vector<std::string>> nodes_of;
  for (std::size_t rank = 0; rank < ranks.facts.size(); ++rank) {
    add_once(nodes_of[ranks.facts[rank].*value], ranks.nodes[rank]);
  }
  if (nodes_of.size() <= 1) {
    return;
  }
  const std::vector<std::string> texts = each(nodes_of, [](const auto& version) {
    return fmt::format("{} on {}", version.first, first_of(version.second, 3));
  });
  check.fail(
      format_message("{} differs: {} (ranks of one run must be alike); load the same modules "
                     "on all nodes, and install anew where they differ",
                     what, first_of(texts, 3)));
}

}  // namespace

std::set<int> Ranks::oversubscribed() const {
  std::set<int> found;
  for (const Machine& machine : machines_of(facts, nodes)) {
    for (const Oversubscription& group : too_many(*this, machine)) {
      found.insert(group.ranks.begin(), group.ranks.end());
    }
  }
  return found;
}

bool Ranks::are_uneven() const {
  std::set<int> counts;
  for (const auto& [node, count] : ranks_by_node(*this)) {
    counts.insert(count);
  }
  return counts.size() > 1;
}

std::string Ranks::rank_text(const RankFacts& of) const {
  return fmt::format("rank {} on {}", of.rank, nodes[of.rank]);
}

std::vector<int> Ranks::first_ranks() const {
  std::set<std::string> seen;
  std::vector<int> firsts;
  for (int rank = 0; rank < std::ssize(nodes); ++rank) {
    if (seen.insert(nodes[rank]).second) {
      firsts.push_back(rank);
    }
  }
  return firsts;
}

std::vector<std::string> Ranks::distinct_nodes() const {
  return each(first_ranks(), [&](int rank) { return nodes[rank]; });
}

Check launch_check(const Ranks& ranks) {
  Check check("launch");
  const auto counts = ranks_by_node(ranks);
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end(), by_count);
  const auto size = std::ssize(ranks.facts);
  check.say(fmt::format("{} on {}", counted(size, "rank"), counted(counts.size(), "node")));
  if (counts.size() > 1) {
    check.say(fmt::format("{}, {} on each", check.summary(),
                          least->second == most->second
                              ? std::to_string(most->second)
                              : fmt::format("{} to {}", least->second, most->second)));
  }
  const auto other = std::ranges::find_if(
      ranks.facts, [&](const RankFacts& facts) { return facts.launched_ranks != size; });
  if (other != ranks.facts.end() && other->launched_ranks > 1) {
    check.fail(
        format_message("the launcher started {} ranks, but MPI has {} (the MPI of fourfold and "
                       "the launcher do not understand each other); start with the mpiexec of "
                       "that MPI, or another `srun --mpi=`",
                       other->launched_ranks, size));
  }
  if (size == 1 && ranks.facts.front().job_tasks > 1) {
    check.warn(
        fmt::format("this job has {} tasks, but this is one process (nothing started it on "
                    "all of them); use `srun fourfold doctor`, or doctor.sbatch",
                    ranks.facts.front().job_tasks));
  }
  if (least->second != most->second) {
    check.warn(
        fmt::format("{} has {} ranks and {} has {} (the node with fewer waits for the "
                    "other); give --ntasks-per-node",
                    least->first, least->second, most->first, most->second));
  }
  return check;
}

Check mesh_check(const Ranks& ranks, const std::optional<comm::MeshShape>& mesh,
                 const std::string& problem) {
  Check check("mesh");
  if (!problem.empty()) {
    check.say("the run file does not fit");
    check.fail(problem);
    return check;
  }
  if (!mesh) {
    check.say("no run file: all ranks as one group");
    return check;
  }
  std::vector<std::string> spread;  // lines of tp that are not on one node
  for (int first = 0; first < mesh->ranks(); first += mesh->tp) {
    const auto begin = ranks.nodes.begin() + first;
    if (!std::all_of(begin, begin + mesh->tp, [&](const auto& node) { return node == *begin; })) {
      spread.push_back(fmt::format("{}-{}", first, first + mesh->tp - 1));
    }
  }
  check.say(fmt::format("{}; neighbours on tp {}", mesh->str(),
                        mesh->tp == 1    ? "there are none"
                        : spread.empty() ? "share a node"
                                         : "are on several nodes"));
  if (const auto idle = std::ssize(ranks.nodes) - mesh->ranks(); idle > 0) {
    check.say(
        fmt::format("{}; {} of {} ranks are not used", check.summary(), idle, ranks.nodes.size()));
  }
  if (!spread.empty()) {
    const auto counts = ranks_by_node(ranks);
    const int most = std::ranges::max_element(counts, {}, [](const auto& count) {
                       return count.second;
                     })->second;
    check.warn(fmt::format(
        "ranks {} are a group of tp and on several nodes (what tp exchanges in every layer goes "
        "over the network); {}",
        first_of(spread, 3),
        most >= mesh->tp
            ? "use `srun --distribution=block` and a multiple of mesh.tp tasks per "
              "node"
            : fmt::format("lower mesh.tp to at most {}, or start more ranks per node", most)));
  }
  return check;
}

Check cores_check(const Ranks& ranks) {
  Check check("cores");
  std::size_t fewest = SIZE_MAX;
  int threads = 1;
  for (const RankFacts& facts : ranks.facts) {
    fewest = std::min(fewest, cores_in(facts.cores).size());
    threads = std::max(threads, facts.threads);
  }
  check.say(fewest == 0
                ? fmt::format("{} thread(s) per rank; cores are not known", threads)
                : fmt::format("{} per rank, {} allowed{}", counted(threads, "thread"),
                              counted(fewest, "core"), ranks.facts.size() > 1 ? " at least" : ""));
  std::vector<std::string> oversubscribed;
  for (const Machine& machine : machines_of(ranks.facts, ranks.nodes)) {
    for (const Oversubscription& group : too_many(ranks, machine)) {
      oversubscribed.push_back(oversubscription_text(group, machine));
    }
  }
  if (!oversubscribed.empty()) {
    check.warn(
        fmt::format("{} (they take turns there; the figures below are of ranks that wait "
                    "for each other); give --cpus-per-task, `srun --cpu-bind=cores`, or "
                    "fewer ranks and OMP_NUM_THREADS",
                    first_of(oversubscribed, 3)));
  }
  return check;
}

Check builds_check(const Ranks& ranks) {
  Check check("versions");
  check.say(fmt::format("fourfold {}", ranks.facts.front().version));
  compare(ranks, "fourfold", &RankFacts::version, check);
  return check;
}

Check versions_check(const Ranks& ranks) {
  Check check("versions");
  const RankFacts& first = ranks.facts.front();
  check.say(fmt::format("fourfold {}, {}, HDF5 {}", first.version, first.mpi, first.hdf5));
  compare(ranks, "MPI", &RankFacts::mpi, check);
  compare(ranks, "HDF5", &RankFacts::hdf5, check);
  return check;
}

}  // namespace fourfold::doctor
