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
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

namespace fourfold::io {

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

PayloadCopies::PayloadCopies(const Manifest& manifest, std::filesystem::path folder,
                             const NodeMap& nodes, comm::Communicator& world)
    : manifest_(manifest),
      folder_(std::move(folder)),
      nodes_(nodes),
      world_(world),
      nodes_with_(manifest.files.size()) {
  for (const StoredFile& file : manifest_.files) {
    bytes_ += file.bytes;
  }
  look();
}

void PayloadCopies::look() {
  std::string mine;  // numbers of files in the manifest
  for (std::size_t i = 0; nodes_.is_first(world_.rank()) && i < manifest_.files.size(); ++i) {
    InputFile file;
    if (!file.open(folder_ / manifest_.files[i].name) &&
        file.size_bytes() == manifest_.files[i].bytes) {
      mine += fmt::format("{} ", i);
    }
  }
  const std::vector<std::string> all = comm::all_gather_text(world_, mine);
  for (int rank = 0; rank < std::ssize(all); ++rank) {
    std::istringstream numbers(all[rank]);
    for (std::size_t i = 0; numbers >> i;) {
      nodes_with_[i].insert(nodes_.node_of(rank));
    }
  }
}

std::vector<std::string> PayloadCopies::missing() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < nodes_with_.size(); ++i) {
    if (nodes_with_[i].empty()) {
      names.push_back(manifest_.files[i].name);
    }
  }
  return names;
}

std::vector<int> PayloadCopies::ranks_for(const std::vector<std::size_t>& files) const {
  std::vector<std::uint64_t> bytes_of_rank(world_.size(), 0);
  std::vector<int> ranks;
  for (const std::size_t file : files) {
    int best = -1;
    for (const int node : nodes_with_[file]) {
      for (const int rank : nodes_.ranks_on(node)) {
        if (best < 0 || bytes_of_rank[rank] < bytes_of_rank[best]) {
          best = rank;
        }
      }
    }
    bytes_of_rank[best] += manifest_.files[file].bytes;
    ranks.push_back(best);
  }
  return ranks;
}

std::vector<PayloadCopies::Damage> PayloadCopies::copy_once(const std::filesystem::path& target,
                                                            const std::vector<std::size_t>& files) {
  const std::vector<int> ranks = ranks_for(files);
  std::string mine;  // "FILE WHAT\n"
  write_together(world_, [&] {
    for (std::size_t i = 0; i < files.size(); ++i) {
      const StoredFile& file = manifest_.files[files[i]];
      if (ranks[i] != world_.rank()) {
        continue;
      }
      if (const Defect defect = copy_payload(folder_ / file.name, target / file.name, file)) {
        mine += fmt::format("{} {} {}\n", files[i], (folder_ / file.name).string(), *defect);
      }
    }
  });
  std::vector<Damage> damage;
  const std::vector<std::string> all = comm::all_gather_text(world_, mine);
  for (int rank = 0; rank < std::ssize(all); ++rank) {
    std::istringstream lines(all[rank]);
    std::size_t file = 0;
    for (std::string what; lines >> file && std::getline(lines >> std::ws, what);) {
      nodes_with_[file].erase(nodes_.node_of(rank));
      damage.push_back({file, format_message("{} (node of rank {})", what, rank)});
    }
  }
  return damage;
}

std::vector<std::string> PayloadCopies::copy_all(const std::filesystem::path& target) {
  std::vector<std::size_t> files(manifest_.files.size());
  std::iota(files.begin(), files.end(), std::size_t{0});
  while (!files.empty()) {
    const std::vector<Damage> damage = copy_once(target, files);
    files.clear();
    std::vector<std::string> hopeless;
    for (const Damage& found : damage) {
      if (nodes_with_[found.file].empty()) {
        hopeless.push_back(found.what);
      } else {
        log::warning(format_message("{}: the copy on another node is taken", found.what));
        files.push_back(found.file);
      }
    }
    if (!hopeless.empty()) {
      return hopeless;
    }
    std::ranges::sort(files);
  }
  return {};
}

}  // namespace fourfold::io
