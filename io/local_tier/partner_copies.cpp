// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "local_tier/payload_copies.hpp"
#include "save/step_save.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/io/digest.hpp>

#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

namespace fourfold::io {
namespace {

constexpr int tag = 0;

constexpr int none = -1;

/// So many files the ranks of some node pass to each of the next one.
std::int64_t rounds_of(const NodeMap& nodes) {
  std::int64_t most = 0;
  for (int node = 0; node < nodes.nodes(); ++node) {
    const std::int64_t from = std::ssize(nodes.ranks_on(node));
    const std::int64_t to = std::ssize(nodes.ranks_on(nodes.next(node)));
    most = std::max(most, (from + to - 1) / to);
  }
  return most;
}

/// Sends one file and gets another, at once; null: none. The other side waits for all bytes, so
/// what cannot be read is sent as zeros, and what cannot be written is taken all the same.
/// @param out, in  memory for a chunk each
std::optional<comm::Failure> pass_on(const StoredFile* leaving, int receiver,
                                     const StoredFile* coming, int sender,
                                     const std::filesystem::path& folder, std::span<std::byte> out,
                                     std::span<std::byte> in, comm::Communicator& world) {
  const std::uint64_t leaving_bytes = leaving != nullptr ? leaving->bytes : 0;
  const std::uint64_t coming_bytes = coming != nullptr ? coming->bytes : 0;
  InputFile input;
  Defect unread;
  if (leaving != nullptr) {
    unread = input.open(folder / leaving->name);
    if (!unread && input.size_bytes() != leaving_bytes) {
      unread = "has another size than was written";
    }
  }
  std::optional<OutputFile> output;
  std::optional<comm::Failure> unwritten;
  std::uint32_t crc = 0;
  if (coming != nullptr) {
    unwritten =
        comm::capture_failure([&] { output.emplace(OutputFile::create(folder / coming->name)); });
  }
  for (std::uint64_t at = 0; at < std::max(leaving_bytes, coming_bytes); at += chunk_bytes) {
    comm::Work sent;
    comm::Work received;
    std::span<std::byte> arrived;
    if (at < coming_bytes) {
      arrived = in.first(std::min(chunk_bytes, coming_bytes - at));
      received =
          world.recv(TensorView(arrived.data(), DType::u8, {std::ssize(arrived)}), sender, tag, {});
    }
    if (at < leaving_bytes) {
      const auto bytes = out.first(std::min(chunk_bytes, leaving_bytes - at));
      if (!unread) {
        unread = input.read_at(at, bytes);
      }
      if (unread) {
        std::ranges::fill(bytes, std::byte{0});
      }
      sent = world.send(ConstTensorView(bytes.data(), DType::u8, {std::ssize(bytes)}), receiver,
                        tag, {});
    }
    sent.wait({});
    received.wait({});
    crc = crc32c(arrived, crc);
    if (!arrived.empty() && !unwritten) {
      unwritten = comm::capture_failure([&] { output->write_at(at, arrived); });
    }
  }
  const auto failure = comm::capture_failure([&] {
    if (unread) {
      throw UserError(
          ExitCode::cannot_write,
          format_message("{}: cannot be copied to the other node, it {}; check the file system",
                         (folder / leaving->name).string(), *unread));
    }
    if (coming == nullptr || unwritten) {
      return;
    }
    if (crc != coming->crc32c) {
      throw UserError(ExitCode::cannot_write,
                      format_message("{}: the copy for the other node arrived with other bytes "
                                     "than were saved (CRC-32C: a memory, a disk or the network "
                                     "is faulty); watch the nodes of this run",
                                     (folder / coming->name).string()));
    }
    output->sync();
    output->close();
  });
  return failure ? failure : unwritten;
}

}  // namespace

/// In each round a rank sends one file at most and gets one at most, chunk by chunk: whoever is
/// at chunk k of round t waits only for others that are there or before, so all get on.
std::optional<comm::Failure> copy_to_partners(const Manifest& manifest,
                                              const std::filesystem::path& folder,
                                              const NodeMap& nodes, comm::Communicator& world) {
  std::vector<std::byte> out;
  std::vector<std::byte> in;
  write_together(world, [&] {
    out.resize(chunk_bytes);
    in.resize(chunk_bytes);
  });
  std::map<int, const StoredFile*> file_of_rank;
  for (const StoredFile& file : manifest.files) {
    file_of_rank.emplace(payload_number(file.name)->file, &file);
  }
  const auto file_of = [&](int rank) {
    const auto found = file_of_rank.find(rank);
    return found == file_of_rank.end() ? nullptr : found->second;
  };
  const int node = nodes.node_of(world.rank());
  const std::int64_t place = nodes.place_of(world.rank());
  const auto receivers = nodes.ranks_on(nodes.next(node));
  const auto senders = nodes.ranks_on(nodes.previous(node));
  const std::int64_t others = std::ssize(receivers);
  const std::int64_t own = std::ssize(nodes.ranks_on(node));
  std::optional<comm::Failure> first;
  for (std::int64_t round = 0; round < rounds_of(nodes); ++round) {
    const int receiver = place / others == round ? receivers[place % others] : none;
    const std::int64_t sender_place = round * own + place;
    const int sender = sender_place < std::ssize(senders) ? senders[sender_place] : none;
    const auto failure =
        pass_on(receiver == none ? nullptr : file_of(world.rank()), receiver,
                sender == none ? nullptr : file_of(sender), sender, folder, out, in, world);
    if (!first) {
      first = failure;
    }
  }
  return first;
}

}  // namespace fourfold::io
