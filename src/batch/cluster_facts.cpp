// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/cluster_facts.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <sstream>
#include <vector>

namespace fourfold::batch {
namespace {

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, separator);) {
    fields.push_back(field);
  }
  return fields;
}

/// "64", and "64+" where nodes differ; 0 for anything else.
long number_of(const std::string& text) {
  long value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return std::max(0L, value);
}

/// One line of sinfo; nothing when it makes no sense.
std::optional<Partition> partition_in(const std::string& line) {
  constexpr std::size_t mib = 1 << 20;
  const std::vector<std::string> fields = split(line, '|');
  if (fields.size() != 4 || fields[0].empty()) {
    return std::nullopt;
  }
  Partition partition{.name = fields[0],
                      .nodes = static_cast<int>(number_of(fields[1])),
                      .cpus = static_cast<int>(number_of(fields[2])),
                      .node_bytes = static_cast<std::size_t>(number_of(fields[3])) * mib};
  if (partition.name.back() == '*') {
    partition.name.pop_back();
    partition.is_default = true;
  }
  // 1 MiB is what a node has whose memory nobody has told Slurm.
  partition.node_bytes = partition.node_bytes <= mib ? 0 : partition.node_bytes;
  return partition;
}

/// The names in what `srun --mpi=list` prints: a line each, some Slurms put "srun: " in front, and
/// versions of one kind stand behind a colon. A heading has several words.
std::vector<std::string> offered_mpis(std::string_view text) {
  std::vector<std::string> names;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    constexpr std::string_view prefix = "srun: ";
    std::string rest = line.starts_with(prefix) ? line.substr(prefix.size()) : line;
    const std::size_t colon = rest.rfind(':');
    if (colon != std::string::npos) {
      rest = rest.substr(colon + 1);
      std::ranges::replace(rest, ',', ' ');
    }
    std::istringstream words(rest);
    const std::vector<std::string> found{std::istream_iterator<std::string>(words), {}};
    if (found.size() == 1 || colon != std::string::npos) {
      names.insert(names.end(), found.begin(), found.end());
    }
  }
  return names;
}

}  // namespace

std::optional<Partition> partition_of(std::string_view text, std::string_view name) {
  std::optional<Partition> found;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const auto kind = partition_in(line);
    if (!kind || (name.empty() ? !kind->is_default : kind->name != name)) {
      continue;
    }
    if (!found) {
      found = kind;
      continue;
    }
    found->nodes += kind->nodes;
    found->cpus = std::min(found->cpus, kind->cpus);
    found->node_bytes = std::min(found->node_bytes, kind->node_bytes);
  }
  return found;
}

bool offers_mpi(std::string_view offered, std::string_view name) {
  return std::ranges::count(offered_mpis(offered), name) > 0;
}

std::optional<std::string> mpi_of(std::span<const LibraryFact> libraries,
                                  std::string_view offered) {
  std::vector<std::string> usable;
  for (const LibraryFact& library : libraries) {
    if (library.name.find("MPI") == std::string_view::npos) {
      continue;
    }
    const std::string what = std::string(library.name) + " " + std::string(library.version);
    if (what.find("Cray") != std::string::npos) {
      usable = {"cray_shasta", "pmi2"};
    } else if (what.find("MPICH") != std::string::npos || what.find("Intel") != std::string::npos) {
      usable = {"pmi2", "pmix"};
    } else if (what.find("Open MPI") != std::string::npos) {
      usable = {"pmix", "pmi2"};
    }
  }
  if (usable.empty()) {
    return std::nullopt;
  }
  for (const std::string& one : usable) {
    if (offers_mpi(offered, one)) {
      return one;
    }
  }
  return "";
}

}  // namespace fourfold::batch
