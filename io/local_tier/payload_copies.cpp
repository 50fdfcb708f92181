// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "local_tier/payload_copies.hpp"

#include "save/step_save.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

namespace fourfold::io {

namespace {

/// Copies a payload file and checks it whole on the way. Replaces what is there.
/// @return what is wrong with the original
Defect copy_payload(const std::filesystem::path& from, const std::filesystem::path& to,
                    const StoredFile& expected) {
  InputFile input;
  if (Defect defect = input.open(from)) {
    return defect;
  }
  if (input.size_bytes() != expected.bytes) {
    return fmt::format("has {} bytes instead of {}", input.size_bytes(), expected.bytes);
  }
  remove_file(to);  // of another node, that was damaged
  OutputFile output = OutputFile::create(to);
  std::vector<std::byte> buffer(std::min(chunk_bytes, expected.bytes));
  std::uint32_t crc = 0;
  for (std::uint64_t at = 0; at < expected.bytes; at += chunk_bytes) {
    const auto bytes =
        std::span(buffer).first(std::min<std::uint64_t>(chunk_bytes, expected.bytes - at));
    if (Defect defect = input.read_at(at, bytes)) {
      return defect;
    }
    crc = crc32c(bytes, crc);
    output.write_at(at, bytes);
  }
  if (crc != expected.crc32c) {
    return "is damaged (CRC-32C)";
  }
  output.sync();
  output.close();
  return std::nullopt;
}

/// Of each file the rank that copies it. @param files  indices into the manifest
std::vector<int> ranks_for(const Manifest& manifest, const std::vector<std::size_t>& files,
                           const NodeMap& nodes, const NodesOfFiles& nodes_with, int ranks) {
  std::vector<std::uint64_t> bytes_of_rank(ranks, 0);
  std::vector<int> chosen;
  for (const std::size_t file : files) {
    int best = -1;
    for (const int node : nodes_with[file]) {
      for (const int rank : nodes.ranks_on(node)) {
        if (best < 0 || bytes_of_rank[rank] < bytes_of_rank[best]) {
          best = rank;
        }
      }
    }
    bytes_of_rank[best] += manifest.files[file].bytes;
    chosen.push_back(best);
  }
  return chosen;
}

}  // namespace

NodesOfFiles nodes_of_payloads(const Manifest& manifest, const std::filesystem::path& folder,
                               const NodeMap& nodes, comm::Communicator& world) {
  std::string mine;  // numbers of files in the manifest
  for (std::size_t i = 0; nodes.is_first(world.rank()) && i < manifest.files.size(); ++i) {
    InputFile file;
    if (!file.open(folder / manifest.files[i].name) &&
        file.size_bytes() == manifest.files[i].bytes) {
      mine += fmt::format("{} ", i);
    }
  }
  NodesOfFiles nodes_with(manifest.files.size());
  const std::vector<std::string> all = comm::all_gather_text(world, mine);
  for (int rank = 0; rank < std::ssize(all); ++rank) {
    std::istringstream numbers(all[rank]);
    for (std::size_t i = 0; numbers >> i;) {
      nodes_with[i].insert(nodes.node_of(rank));
    }
  }
  return nodes_with;
}

std::vector<std::string> copy_payloads(const Manifest& manifest,
                                       const std::filesystem::path& folder,
                                       const std::filesystem::path& target, const NodeMap& nodes,
                                       NodesOfFiles nodes_with, comm::Communicator& world) {
  std::vector<std::size_t> files(manifest.files.size());
  std::iota(files.begin(), files.end(), std::size_t{0});
  std::vector<std::string> hopeless;
  while (!files.empty() && hopeless.empty()) {
    const std::vector<int> ranks = ranks_for(manifest, files, nodes, nodes_with, world.size());
    std::string mine;  // "FILE WHAT\n"
    write_together(world, [&] {
      for (std::size_t i = 0; i < files.size(); ++i) {
        const StoredFile& file = manifest.files[files[i]];
        if (ranks[i] != world.rank()) {
          continue;
        }
        if (const Defect defect = copy_payload(folder / file.name, target / file.name, file)) {
          mine += fmt::format("{} {} {}\n", files[i], (folder / file.name).string(), *defect);
        }
      }
    });
    files.clear();
    const std::vector<std::string> all = comm::all_gather_text(world, mine);
    for (int rank = 0; rank < std::ssize(all); ++rank) {
      std::istringstream lines(all[rank]);
      std::size_t file = 0;
      for (std::string what; lines >> file && std::getline(lines >> std::ws, what);) {
        const std::string damage = format_message("{} (node of rank {})", what, rank);
        nodes_with[file].erase(nodes.node_of(rank));
        if (nodes_with[file].empty()) {
          hopeless.push_back(damage);
        } else {
          log::warning(format_message("{}: the copy on another node is taken", damage));
          files.push_back(file);
        }
      }
    }
    std::ranges::sort(files);
  }
  return hopeless;
}

}  // namespace fourfold::io
