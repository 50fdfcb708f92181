// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rank_checks.hpp"

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
  for (const RankFacts& facts : ranks) {
    ++counts[facts.node];
  }
  return counts;
}

/// Ranks of a machine that have more threads together than cores, in the smallest such groups: of
/// each set of cores that some rank has, the ranks that have no other (Hall's condition, for the
/// sets that launchers make).
std::vector<std::vector<int>> oversubscribed_groups(const Ranks& ranks, const Machine& machine) {
  std::map<std::string, std::vector<int>> cores_of_list;
  for (const int rank : machine.ranks) {
    cores_of_list.try_emplace(ranks[rank].cores, cores_in(ranks[rank].cores));
  }
  std::vector<std::vector<int>> groups;
  for (const auto& [list, cores] : cores_of_list) {
    std::vector<int> group;
    int threads = 0;
    for (const int rank : machine.ranks) {
      const std::vector<int>& own = cores_of_list.at(ranks[rank].cores);
      if (!own.empty() && std::ranges::includes(cores, own)) {
        group.push_back(rank);
        threads += ranks[rank].threads;
      }
    }
    if (threads > std::ssize(cores)) {
      groups.push_back(std::move(group));
    }
  }
  std::ranges::stable_sort(groups, {}, &std::vector<int>::size);
  std::vector<std::vector<int>> smallest;
  for (const std::vector<int>& group : groups) {
    if (std::ranges::none_of(smallest, [&](const std::vector<int>& part) {
          return std::ranges::includes(group, part);
        })) {
      smallest.push_back(group);
    }
  }
  return smallest;
}

std::string oversubscription_text(const Ranks& ranks, const Machine& machine,
                                  const std::vector<int>& group) {
  std::set<int> cores;
  int threads = 0;
  for (const int rank : group) {
    const std::vector<int> own = cores_in(ranks[rank].cores);
    cores.insert(own.begin(), own.end());
    threads += ranks[rank].threads;
  }
  const bool is_one = group.size() == 1;
  return fmt::format("{} {} on {} {} with {} on {}", is_one ? "rank" : "ranks", first_of(group),
                     machine.str(), is_one ? "computes" : "compute", counted(threads, "thread"),
                     counted(cores.size(), "core"));
}

/// What has to be the same on all ranks.
void compare(const Ranks& ranks, const char* what, std::string RankFacts::*value, Check& check) {
  std::map<std::string, std::vector<std::string>> nodes_of;
  for (const RankFacts& facts : ranks) {
    add_once(nodes_of[facts.*value], facts.node);
  }
  if (nodes_of.size() <= 1) {
    return;
  }
  const std::vector<std::string> texts = each(nodes_of, [](const auto& version) {
    return fmt::format("{} on {}", version.first, first_of(version.second, 3));
  });
  check.fail(
      format_message("{} differs: {} (ranks of one run must be alike); load the same modules on "
                     "all nodes, and install anew where they differ",
                     what, first_of(texts, 3)));
}

}  // namespace

std::set<int> oversubscribed(const Ranks& ranks) {
  std::set<int> found;
  for (const Machine& machine : machines_of(ranks)) {
    for (const std::vector<int>& group : oversubscribed_groups(ranks, machine)) {
      found.insert(group.begin(), group.end());
    }
  }
  return found;
}

bool are_uneven(const Ranks& ranks) {
  const auto counts = ranks_by_node(ranks);
  return std::ranges::any_of(
      counts, [&](const auto& count) { return count.second != counts.begin()->second; });
}

Check launch_check(const Ranks& ranks) {
  Check check("launch");
  const auto counts = ranks_by_node(ranks);
  const auto by_count = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end(), by_count);
  const auto size = std::ssize(ranks);
  check.say(fmt::format("{} on {}", counted(size, "rank"), counted(counts.size(), "node")));
  if (counts.size() > 1) {
    check.say(fmt::format("{}, {} on each", check.summary(),
                          least->second == most->second
                              ? std::to_string(most->second)
                              : fmt::format("{} to {}", least->second, most->second)));
  }
  const auto other = std::ranges::find_if(
      ranks, [&](const RankFacts& facts) { return facts.launched_ranks != size; });
  if (other != ranks.end() && other->launched_ranks > 1) {
    check.fail(format_message(
        "the launcher started {} ranks, but MPI has {} (the MPI of fourfold and the launcher do "
        "not understand each other); start with the mpiexec of that MPI, or another `srun --mpi=`",
        other->launched_ranks, size));
  }
  if (size == 1 && ranks.front().job_tasks > 1) {
    check.warn(
        fmt::format("this job has {} tasks, but this is one process (nothing started it on all of "
                    "them); use `srun fourfold doctor`, or doctor.sbatch",
                    ranks.front().job_tasks));
  }
  if (least->second != most->second) {
    check.warn(
        fmt::format("{} has {} ranks and {} has {} (the node with fewer waits for the other); give "
                    "--ntasks-per-node",
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
    if (!std::all_of(ranks.begin() + first, ranks.begin() + first + mesh->tp,
                     [&](const RankFacts& facts) { return facts.node == ranks[first].node; })) {
      spread.push_back(fmt::format("{}-{}", first, first + mesh->tp - 1));
    }
  }
  check.say(fmt::format("{}; neighbours on tp {}", mesh->str(),
                        mesh->tp == 1    ? "there are none"
                        : spread.empty() ? "share a node"
                                         : "are on several nodes"));
  if (const auto idle = std::ssize(ranks) - mesh->ranks(); idle > 0) {
    check.say(fmt::format("{}; {} of {} ranks are not used", check.summary(), idle, ranks.size()));
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
            ? "use `srun --distribution=block` and a multiple of mesh.tp tasks per node"
            : fmt::format("lower mesh.tp to at most {}, or start more ranks per node", most)));
  }
  return check;
}

Check cores_check(const Ranks& ranks) {
  Check check("cores");
  std::size_t fewest = SIZE_MAX;
  int threads = 1;
  for (const RankFacts& facts : ranks) {
    fewest = std::min(fewest, cores_in(facts.cores).size());
    threads = std::max(threads, facts.threads);
  }
  check.say(fewest == 0
                ? fmt::format("{} thread(s) per rank; cores are not known", threads)
                : fmt::format("{} per rank, {} allowed{}", counted(threads, "thread"),
                              counted(fewest, "core"), ranks.size() > 1 ? " at least" : ""));
  std::vector<std::string> oversubscriptions;
  for (const Machine& machine : machines_of(ranks)) {
    for (const std::vector<int>& group : oversubscribed_groups(ranks, machine)) {
      oversubscriptions.push_back(oversubscription_text(ranks, machine, group));
    }
  }
  if (!oversubscriptions.empty()) {
    check.warn(fmt::format(
        "{} (they take turns there; the figures below are of ranks that wait for each other); give "
        "--cpus-per-task, `srun --cpu-bind=cores`, or fewer ranks and OMP_NUM_THREADS",
        first_of(oversubscriptions, 3)));
  }
  return check;
}

Check builds_check(const Ranks& ranks) {
  Check check("versions");
  check.say(fmt::format("fourfold {}", ranks.front().version));
  compare(ranks, "fourfold", &RankFacts::version, check);
  return check;
}

Check versions_check(const Ranks& ranks) {
  Check check("versions");
  const RankFacts& first = ranks.front();
  check.say(fmt::format("fourfold {}, {}, HDF5 {}", first.version, first.mpi, first.hdf5));
  compare(ranks, "MPI", &RankFacts::mpi, check);
  compare(ranks, "HDF5", &RankFacts::hdf5, check);
  return check;
}

}  // namespace fourfold::doctor
