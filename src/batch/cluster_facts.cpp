// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "slurm_lines.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/batch/submission.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <regex>
#include <sstream>
#include <system_error>
#include <vector>

namespace fourfold::batch {

namespace {

constexpr std::size_t mib = 1 << 20;

/// "infinite" and "n/a" are none.
bool is_limit(const std::string& time) {
  try {
    return time.find(':') != std::string::npos && time_limit_s(time) > 0;
  } catch (const UserError&) {
    return false;
  }
}

/// All that sinfo names. Of "64+", where nodes differ, the number is the least.
std::vector<Partition> partitions_in(std::string_view text) {
  // The last ones are a time limit ("1-00:00:00", "infinite"), the sizes of jobs ("1-4",
  // "1-infinite") and the partition's state.
  static const std::regex form(
      R"(([^|\s]+?)(\*?)\|(\d+)[^|\s]?\|(\d+)[^|\s]?\|(\d+)[^|\s]?(?:\|([^|\s]*)\|(?:\d+-)?([^|\s]*)(?:\|([a-z]*))?)?)");
  std::vector<Partition> partitions;
  for (const auto& line : lines_of_form(text, form)) {
    const std::size_t node_mib = number_of(line[5]);
    partitions.push_back({.name = line[1],
                          .is_default = !line[2].empty(),
                          .nodes = number_of<int>(line[3]),
                          .cpus = number_of<int>(line[4]),
                          // 1 MiB is what a node has whose memory nobody has told Slurm.
                          .node_bytes = node_mib <= 1 ? 0 : node_mib * mib,
                          .time_limit = is_limit(line[6]) ? line[6] : "",
                          .most_nodes = number_of<int>(line[7]),
                          .state = line[8]});
  }
  return partitions;
}

/// The names in what `srun --mpi=list` prints: a line each, some Slurms put "srun: " in front, and
/// versions of one kind stand after a colon.
std::vector<std::string> offered_mpis(std::string_view text) {
  static const std::regex one(R"((?:srun: )?\s*([a-z0-9_]+))");
  static const std::regex several(
      R"((?:srun: )?.*plugin versions available: *([a-z0-9_]+(?:[, ]+[a-z0-9_]+)*))");
  std::vector<std::string> names;
  for (const auto& line : lines_of_form(text, one)) {
    names.push_back(line[1]);
  }
  for (auto& line : lines_of_form(text, several)) {
    std::ranges::replace(line[1], ',', ' ');
    std::istringstream words(line[1]);
    names.insert(names.end(), std::istream_iterator<std::string>(words), {});
  }
  return names;
}

}  // namespace

std::optional<Partition> partition_of(std::string_view text, std::string_view name) {
  std::optional<Partition> found;
  for (const Partition& kind : partitions_in(text)) {
    if (name.empty() ? !kind.is_default : kind.name != name) {
      continue;
    }
    if (!found) {
      found = kind;
      continue;
    }
    found->nodes += kind.nodes;
    found->cpus = std::min(found->cpus, kind.cpus);
    found->node_bytes = std::min(found->node_bytes, kind.node_bytes);
  }
  return found;
}

bool names_partitions(std::string_view text) {
  return !partitions_in(text).empty();
}

std::optional<SubmittedJob> submitted_job(std::string_view text) {
  static const std::regex form(R"(([1-9]\d*)(?:;([\w.-]+))?)");
  std::optional<SubmittedJob> job;
  for (const auto& line : lines_of_form(text, form)) {
    if (job) {
      return std::nullopt;
    }
    job = {line[1], line[2]};
  }
  return job;
}

bool may_be_submitted(std::string_view errors) {
  // Slurm's errors and the system's, of what is read after the request was sent; successor.bash
  // has them, too.
  constexpr std::array<std::string_view, 6> unanswered{
      "timed out",        "Zero Bytes were transmitted", "receive failure", "Unexpected message",
      "Connection reset", "Transport endpoint"};
  return std::ranges::any_of(unanswered, [&](std::string_view words) {
    return errors.find(words) != std::string_view::npos;
  });
}

std::vector<QueuedJob> queued_jobs_of(std::string_view text) {
  static const std::regex form(R"(([1-9]\d*) +(\S.*))");
  std::vector<QueuedJob> jobs;
  for (const auto& line : lines_of_form(text, form)) {
    jobs.push_back({line[1], line[2]});
  }
  return jobs;
}

std::vector<std::string> hostnames_command(const std::string& nodes) {
  return {"scontrol", "show", "hostnames", nodes};
}

std::vector<std::string> hostnames_of(std::string_view text) {
  static const std::regex form(R"([A-Za-z0-9][A-Za-z0-9._-]*)");
  std::vector<std::string> names;
  for (const auto& line : lines_of_form(text, form)) {
    names.push_back(line[0]);
  }
  return names;
}

bool offers_mpi(std::string_view offered, std::string_view name) {
  return std::ranges::count(offered_mpis(offered), name) > 0;
}

bool offers_any_mpi(std::string_view offered) {
  return !offered_mpis(offered).empty();
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

namespace {

/// An amount in MiB as Slurm writes it: "200", "200M", "1G", "0.50G" is none.
std::optional<std::uint64_t> amount_mib(const std::string& text) {
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [unit, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || number > std::numeric_limits<std::uint32_t>::max()) {
    return std::nullopt;
  }
  const std::string letter(unit, end);
  constexpr std::uint64_t step = 1024;
  if (letter.empty() || letter == "M" || letter == "m" || letter == "MB") {
    return number;
  }
  if (letter == "K" || letter == "k" || letter == "KB") {
    return (number + step - 1) / step;
  }
  if (letter == "G" || letter == "g" || letter == "GB") {
    return number * step;
  }
  return letter == "T" || letter == "t" || letter == "TB" ? std::optional(number * step * step)
                                                          : std::nullopt;
}

/// The value of "--mem=1G" where the option is of that name.
std::optional<std::string> value_of(const std::string& option, std::string_view name) {
  const std::size_t at = option.find('=');
  return at != std::string::npos && option.substr(0, at) == name
             ? std::optional(option.substr(at + 1))
             : std::nullopt;
}

MemoryGrant grant_of(std::uint64_t amount, bool of_cpu, std::string set_by, int cpus) {
  const std::uint64_t on_node = amount * (of_cpu ? cpus : 1);
  if (of_cpu && cpus > 1) {
    set_by += format_message(", {} CPUs", cpus);
  }
  return {.bytes = on_node * mib, .set_by = std::move(set_by)};
}

/// By an option of the job; nothing where none says.
std::optional<MemoryGrant> asked_for(std::span<const std::string> options, int cpus) {
  std::optional<MemoryGrant> grant;
  for (const std::string& option : options) {
    for (const bool of_cpu : {false, true}) {
      const auto value = value_of(option, of_cpu ? "--mem-per-cpu" : "--mem");
      if (!value) {
        continue;
      }
      const auto amount = amount_mib(*value);
      if (!amount) {
        throw UserError(ExitCode::usage,
                        format_message("--sbatch={} is no amount of memory (a whole number, with "
                                       "K, M, G or T after it); write it as --mem=64G",
                                       option));
      }
      grant = *amount == 0 ? MemoryGrant{} : grant_of(*amount, of_cpu, option, cpus);
    }
  }
  return grant;
}

/// By "DefMemPerCPU=200" or "DefMemPerNode = 4000" in what a command prints. "UNLIMITED" is none.
std::optional<MemoryGrant> by_default(std::string_view text, const char* whose, int cpus) {
  static const std::regex form(R"((?:^|\s)(DefMemPer(?:CPU|Node))\s*=\s*(\d{1,9})(?:\s|$))");
  std::match_results<std::string_view::const_iterator> parts;
  if (!std::regex_search(text.begin(), text.end(), parts, form)) {
    return std::nullopt;
  }
  const auto amount = amount_mib(parts[2].str());
  const std::string name = parts[1].str();
  return amount && *amount > 0
             ? std::optional(
                   grant_of(*amount, name == "DefMemPerCPU",
                            format_message("{}={} of the {}", name, parts[2].str(), whose), cpus))
             : std::nullopt;
}

}  // namespace

MemoryGrant memory_of_job(std::span<const std::string> options, std::string_view partition,
                          std::string_view config, int cpus) {
  if (auto grant = asked_for(options, cpus)) {
    return *grant;
  }
  if (auto grant = by_default(partition, "partition", cpus)) {
    return *grant;
  }
  return by_default(config, "cluster", cpus).value_or(MemoryGrant{});
}

}  // namespace fourfold::batch
