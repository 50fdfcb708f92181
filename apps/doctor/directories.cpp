// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_facts.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/io/directory_probe.hpp>
#include <fourfold/io/token_file.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

namespace fourfold::doctor {
namespace {

namespace fs = std::filesystem;

/// Of each node, and of all together: a file system has to take it within seconds.
constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t most_together_bytes = std::uint64_t{4} << 30;
/// Directories over the network are looked at again after a while.
constexpr double longest_wait_s = 10;
constexpr std::size_t most_files = 256;  ///< of data that are opened
constexpr std::int64_t read_tokens = std::int64_t{1} << 22;

/// The directory, or what is there of the way to it.
fs::path nearest_existing(const fs::path& path) {
  std::error_code ignored;
  fs::path existing = path.empty() ? fs::path(".") : path;
  while (!fs::exists(existing, ignored)) {
    const fs::path parent = existing.parent_path();
    if (parent == existing || parent.empty()) {
      return parent.empty() ? fs::path(".") : parent;
    }
    existing = parent;
  }
  return existing;
}

/// Runs what may fail on this node alone; the problem is a finding.
template <class Work>
void attempt(DirectoryFacts& facts, const Work& work) {
  if (const auto failure = comm::capture_failure(work); failure && facts.problem.empty()) {
    facts.problem = failure->message;
  }
}

void probe(DirectoryFacts& facts, int nodes, double seconds) {
  attempt(facts, [&] {
    const io::DirectoryProbe probe = io::probe_directory(
        facts.probed, std::min(most_bytes, most_together_bytes / nodes), seconds);
    facts.has_links = probe.has_links;
    facts.bytes = probe.bytes;
    facts.write_s = probe.write_s;
    facts.read_s = probe.read_s;
    const io::Room room = io::room_of(facts.probed);
    facts.free_bytes = room.bytes ? static_cast<std::int64_t>(*room.bytes) : -1;
    facts.free_files = room.files ? static_cast<std::int64_t>(*room.files) : -1;
  });
}

/// Whether this node sees what the first two wrote. Nodes that have no problem of their own write.
void look_for_others(DirectoryFacts& facts, comm::Communicator& leaders, double seconds) {
  const std::string own = io::ProbeFile::new_word();
  std::unique_ptr<io::ProbeFile> file;
  if (leaders.rank() < 2) {
    attempt(facts, [&] { file = std::make_unique<io::ProbeFile>(facts.probed, own); });
  }
  const std::string first = comm::broadcast_text(leaders, own, 0);
  const std::string second = leaders.size() > 1 ? comm::broadcast_text(leaders, own, 1) : first;
  leaders.barrier();
  const double start_s = steady_time_s();
  while (true) {
    facts.sees_first = facts.sees_first || io::ProbeFile::is_seen(facts.probed, first);
    facts.sees_second = facts.sees_second || io::ProbeFile::is_seen(facts.probed, second);
    facts.seen_s = steady_time_s() - start_s;
    if ((facts.sees_first && facts.sees_second) ||
        facts.seen_s > std::min(seconds, longest_wait_s)) {
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  leaders.barrier();  // only then the files may go
}

/// Opens token files as a run does, and reads the beginning of the first.
void read_data(const Directory& directory, DirectoryFacts& facts, double seconds) {
  attempt(facts, [&] {
    const double end_s = steady_time_s() + seconds;
    const std::vector<std::string> files = data::expand_patterns(directory.patterns);
    std::vector<std::int32_t> tokens;
    for (std::size_t i = 0; i < files.size() && i < most_files && steady_time_s() < end_s; ++i) {
      const io::TokenFile file{fs::path(files[i])};
      facts.tokens += file.tokens();
      if (i == 0) {
        tokens.resize(std::min(read_tokens, file.tokens()));
        const double start_s = steady_time_s();
        file.read(0, tokens);
        facts.read_s = steady_time_s() - start_s;
        facts.bytes = tokens.size() * io::size_bytes(file.type());
      }
    }
  });
}

}  // namespace

std::vector<DirectoryFacts> measure_directories(const std::vector<Directory>& directories,
                                                const std::string& node,
                                                comm::Communicator& leaders, double seconds_each) {
  std::vector<DirectoryFacts> own;
  for (const Directory& directory : directories) {
    DirectoryFacts& facts = own.emplace_back();
    facts.node = node;
    const bool is_alone = directory.use == Directory::Use::first_rank;
    facts.probed = nearest_existing(directory.path).string();
    if (directory.use == Directory::Use::shared) {
      // Where one node makes it is where the others will look for it.
      facts.probed = comm::broadcast_text(leaders, facts.probed, 0);
    }
    leaders.barrier();
    if (directory.use == Directory::Use::data) {
      read_data(directory, facts, seconds_each);
    } else if (!is_alone || leaders.rank() == 0) {
      if (leaders.rank() == 0 || directory.use == Directory::Use::node) {
        io::remove_old_probes(facts.probed);
      }
      probe(facts, leaders.size(), seconds_each / 2);
    }
    if (directory.use == Directory::Use::shared) {
      look_for_others(facts, leaders, seconds_each * 2);
    }
  }
  return own;
}

}  // namespace fourfold::doctor
