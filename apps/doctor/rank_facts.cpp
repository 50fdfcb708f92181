// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "rank_facts.hpp"

#include "check.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/comm/clock_offset.hpp>
#include <fourfold/comm/library_collectives.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/device/process_memory.hpp>
#include <fourfold/io/directory_probe.hpp>
#include <fourfold/io/hdf5_version.hpp>

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace fourfold::doctor {
namespace {

constexpr int most_cores = 1 << 16;

int number_or(const std::string& text, int otherwise) {
  int value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::string line_of(const std::string& path, const std::string& label) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with(label)) {
      const std::size_t begin = line.find_first_not_of(" \t", label.size());
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

/// The chosen one of "always [madvise] never".
std::string chosen_in(const std::string& path) {
  const std::string line = line_of(path, "");
  const std::size_t begin = line.find('[');
  const std::size_t end = line.find(']');
  return begin == std::string::npos || end == std::string::npos
             ? ""
             : line.substr(begin + 1, end - begin - 1);
}

/// @param resource  of the type that the system's headers give it
std::int64_t limit_of(auto resource) {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return -1;
  }
  return limit.rlim_cur;
}

std::string without_domain(const std::string& host) {
  const bool is_address = host.find_first_not_of("0123456789.") == std::string::npos;
  return is_address ? host : host.substr(0, host.find('.'));
}

}  // namespace

RankFacts own_facts() {
  RankFacts facts;
  facts.slurm_node = environment_text("SLURMD_NODENAME");
  facts.machine = comm::machine_identity();
  facts.launched_ranks = comm::launched_ranks();
  facts.job_tasks = number_or(environment_text("SLURM_NTASKS"), 0);
  facts.threads = std::max(1, number_or(environment_text("OMP_NUM_THREADS"), 1));
  facts.cores = line_of("/proc/self/status", "Cpus_allowed_list:");
  facts.memory_bytes = device::total_memory_bytes().value_or(-1);
  facts.available_bytes = device::available_memory_bytes().value_or(-1);
  facts.huge_pages = chosen_in("/sys/kernel/mm/transparent_hugepage/enabled");
  facts.open_files = limit_of(RLIMIT_NOFILE);
  facts.locked_bytes = limit_of(RLIMIT_MEMLOCK);
  facts.file_bytes = limit_of(RLIMIT_FSIZE);
  facts.address_bytes = limit_of(RLIMIT_AS);
  std::error_code ignored;
  facts.has_shm = std::filesystem::is_directory("/dev/shm", ignored);
  if (const auto free = io::room_of("/dev/shm").bytes; facts.has_shm && free) {
    facts.shm_free_bytes = static_cast<std::int64_t>(*free);
  }
  facts.has_rdma = std::filesystem::exists("/dev/infiniband", ignored);
  facts.version = build_name();
  facts.mpi = comm::LibraryCollectives::library();
  facts.hdf5 = io::hdf5_version();
  return facts;
}

std::vector<int> cores_in(const std::string& list) {
  std::vector<int> cores;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    int first = 0;
    const char* const end = part.data() + part.size();
    auto parsed = std::from_chars(part.data(), end, first);
    int last = first;
    if (parsed.ec == std::errc{} && parsed.ptr != end && *parsed.ptr == '-') {
      parsed = std::from_chars(parsed.ptr + 1, end, last);
    }
    if (parsed.ec != std::errc{} || parsed.ptr != end || first < 0 || last >= most_cores) {
      return {};
    }
    for (int core = first; core <= last; ++core) {
      cores.push_back(core);
    }
  }
  return cores;
}

std::string Machine::str() const {
  return first_of(nodes);
}

std::string RankFacts::str() const {
  return fmt::format("rank {} on {}", rank, node);
}

std::vector<Machine> machines_of(const Ranks& ranks) {
  std::vector<Machine> machines;
  std::map<std::string, std::size_t> index;
  for (const RankFacts& own : ranks) {
    const std::string& key = own.machine.empty() ? own.node : own.machine;
    const auto found = index.try_emplace(key, machines.size()).first;
    if (found->second == machines.size()) {
      machines.emplace_back();
    }
    Machine& machine = machines[found->second];
    machine.ranks.push_back(own.rank);
    add_once(machine.nodes, own.node);
    machine.total_bytes = own.memory_bytes;
    machine.needed_bytes += own.needed_bytes;
    if (own.available_bytes >= 0) {
      machine.available_bytes = machine.available_bytes < 0
                                    ? own.available_bytes
                                    : std::min(machine.available_bytes, own.available_bytes);
    }
  }
  return machines;
}

std::vector<std::string> node_names(std::span<const std::string> hosts,
                                    std::span<const std::string> slurm) {
  std::map<std::string, std::string> node_of_host;
  std::map<std::string, std::string> host_of_node;
  bool fits = hosts.size() == slurm.size();
  for (std::size_t rank = 0; fits && rank < hosts.size(); ++rank) {
    fits = !slurm[rank].empty() &&
           node_of_host.try_emplace(hosts[rank], slurm[rank]).first->second == slurm[rank] &&
           host_of_node.try_emplace(slurm[rank], hosts[rank]).first->second == hosts[rank];
  }
  std::vector<std::string> nodes;
  nodes.reserve(hosts.size());
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    nodes.push_back(fits ? slurm[rank] : without_domain(hosts[rank]));
  }
  return nodes;
}

std::vector<int> first_ranks(const Ranks& ranks) {
  std::set<std::string> seen;
  std::vector<int> firsts;
  for (const RankFacts& facts : ranks) {
    if (seen.insert(facts.node).second) {
      firsts.push_back(facts.rank);
    }
  }
  return firsts;
}

}  // namespace fourfold::doctor
