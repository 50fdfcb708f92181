// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/written_exchange.hpp"

#include <fourfold/comm/fail_together.hpp>

#include <cstdint>
#include <numeric>
#include <span>

namespace fourfold::io {
namespace {

constexpr std::size_t words_per_extent = 3;
constexpr std::size_t words_per_file = 5;
constexpr std::size_t words_per_place = 4;

using Words = std::vector<std::uint64_t>;

/// Sends send[r] to rank r. @param recv_counts  words that come from each rank
std::vector<Words> exchange(const std::vector<Words>& send,
                            const std::vector<std::int64_t>& recv_counts,
                            comm::Communicator& communicator) {
  Words out;
  std::vector<std::int64_t> send_counts;
  for (const Words& words : send) {
    out.insert(out.end(), words.begin(), words.end());
    send_counts.push_back(std::ssize(words));
  }
  Words in(std::accumulate(recv_counts.begin(), recv_counts.end(), std::int64_t{0}));
  communicator
      .all_to_all(ConstTensorView(out.data(), {std::ssize(out)}), send_counts,
                  TensorView(in.data(), {std::ssize(in)}), recv_counts, {})
      .wait({});
  std::vector<Words> received;
  auto next = in.begin();
  for (const std::int64_t count : recv_counts) {
    received.emplace_back(next, next + count);
    next += count;
  }
  return received;
}

void put(Words& words, const WrittenExtent& written) {
  words.insert(words.end(), {written.digest.low, written.digest.high,
                             std::uint64_t{written.crc32c} << 32 | written.table_crc32c});
}

WrittenExtent take_extent(std::span<const std::uint64_t>& words) {
  const WrittenExtent written{{words[0], words[1]},
                              static_cast<std::uint32_t>(words[2] >> 32),
                              static_cast<std::uint32_t>(words[2])};
  words = words.subspan(words_per_extent);
  return written;
}

void put(Words& words, const WrittenPayload& payload) {
  words.insert(words.end(), {payload.file_bytes, payload.table.byte_offset, payload.table.chunks,
                             payload.table_crc32c, payload.file_crc32c});
  for (const StoredExtent& extent : payload.extents) {
    words.insert(words.end(),
                 {extent.byte_offset, extent.first_chunk, extent.digest.low, extent.digest.high});
  }
}

WrittenPayload take_payload(const SaveJob& job, const PlannedFile& file,
                            std::span<const std::uint64_t>& words) {
  WrittenPayload payload{.extents = {},
                         .file_bytes = words[0],
                         .table = {words[1], words[2]},
                         .table_crc32c = static_cast<std::uint32_t>(words[3]),
                         .file_crc32c = static_cast<std::uint32_t>(words[4])};
  words = words.subspan(words_per_file);
  for (const std::size_t planned : file.extents) {
    StoredExtent& extent = payload.extents.emplace_back(job.stored(planned));
    extent.byte_offset = words[0];
    extent.first_chunk = words[1];
    extent.digest = {words[2], words[3]};
    words = words.subspan(words_per_place);
  }
  return payload;
}

/// Calls visit(extent, writer, leader) in one order, on all processes.
template <class Visit>
void each_extent(const SaveJob& job, const Division& division, const Visit& visit) {
  for (std::size_t file = 0; file < job.files.size(); ++file) {
    for (const std::size_t extent : job.files[file].extents) {
      visit(extent, division.process_of_extent[extent], division.leader_of_file[file]);
    }
  }
}

/// What all found out about the extents of the files that this process leads.
WrittenExtents gather_for_leaders(const SaveJob& job, const Division& division,
                                  const WrittenExtents& mine, comm::Communicator& communicator) {
  const int rank = communicator.rank();
  std::vector<Words> send(communicator.size());
  std::vector<std::int64_t> recv_counts(send.size(), 0);
  each_extent(job, division, [&](std::size_t extent, int writer, int leader) {
    if (writer == rank) {
      put(send[leader], mine.at(extent));
    }
    if (leader == rank) {
      recv_counts[writer] += words_per_extent;
    }
  });
  const std::vector<Words> received = exchange(send, recv_counts, communicator);
  std::vector<std::span<const std::uint64_t>> rest(received.begin(), received.end());
  WrittenExtents led;
  each_extent(job, division, [&](std::size_t extent, int writer, int leader) {
    if (leader == rank) {
      led.emplace(extent, take_extent(rest[writer]));
    }
  });
  return led;
}

}  // namespace

std::vector<WrittenPayload> gather_written(
    const SaveJob& job, const Division& division, const WrittenExtents& mine,
    const std::function<const PayloadFrame&(std::size_t file)>& frame_of,
    comm::Communicator& communicator) {
  const int rank = communicator.rank();
  const WrittenExtents written = gather_for_leaders(job, division, mine, communicator);
  std::vector<Words> send(communicator.size());
  std::vector<std::int64_t> recv_counts(send.size(), 0);
  comm::collective_try(communicator, [&] {
    for (std::size_t file = 0; file < job.files.size(); ++file) {
      const std::vector<std::size_t>& extents = job.files[file].extents;
      const int leader = division.leader_of_file[file];
      if (rank == 0) {
        recv_counts[leader] += words_per_file + extents.size() * words_per_place;
      }
      if (leader == rank) {
        std::vector<WrittenExtent> in_file;
        for (const std::size_t extent : extents) {
          in_file.push_back(written.at(extent));
        }
        put(send[0], frame_of(file).describe(in_file));
      }
    }
  });
  const std::vector<Words> received = exchange(send, recv_counts, communicator);
  std::vector<std::span<const std::uint64_t>> rest(received.begin(), received.end());
  std::vector<WrittenPayload> all;
  for (std::size_t file = 0; rank == 0 && file < job.files.size(); ++file) {
    all.push_back(take_payload(job, job.files[file], rest[division.leader_of_file[file]]));
  }
  return all;
}

}  // namespace fourfold::io
