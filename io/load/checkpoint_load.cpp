// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/file_region.hpp"
#include "format/checkpoint_contents.hpp"
#include "load/extent_reader.hpp"
#include "load/shared_reads.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_load.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

namespace fourfold::io {
namespace {

/// A rank names at most this much damage; one line is enough to refuse a checkpoint.
constexpr std::size_t most_lines = 20;

/// One read: the part of a stored extent that lies in a wanted box.
struct Read {
  const StoredExtent* extent = nullptr;
  const WantedBox* wanted = nullptr;
  Box part;
};

/// What the checkpoint has; the rest becomes zero.
std::vector<WantedBox> stored_ones(const Checkpoint& checkpoint,
                                   std::span<const WantedBox> wanted) {
  std::vector<WantedBox> stored;
  for (const WantedBox& box : wanted) {
    if (checkpoint.find(box.id) != nullptr) {
      stored.push_back(box);
    } else if (box.data.bytes() > 0) {
      std::memset(box.data.data(), 0, box.data.bytes());
    }
  }
  return stored;
}

/// Reads of all stored extents that a part of a wanted box lies in.
void add_reads(const Checkpoint& checkpoint, const WantedBox& wanted, const Box& box,
               std::vector<Read>& reads) {
  const CheckpointContents& contents = checkpoint.contents();
  const std::size_t tensor = checkpoint.find(wanted.id) - contents.index.tensors.data();
  for (std::size_t i = contents.first_extent[tensor]; i < contents.first_extent[tensor + 1]; ++i) {
    const StoredExtent& extent = contents.index.extents[i];
    if (const auto part = box.empty() ? std::nullopt : intersect(extent.box, box)) {
      reads.push_back({&extent, &wanted, *part});
    }
  }
}

/// All reads of this rank, in the order in which the bytes lie on disk.
std::vector<Read> plan_reads(const Checkpoint& checkpoint, std::span<const WantedBox> wanted,
                             const SharedReads& shared, int rank) {
  std::vector<Read> reads;
  for (const WantedBox& box : wanted) {
    if (!shared.is_shared(box)) {
      add_reads(checkpoint, box, box.box, reads);
    }
  }
  for (const SharedReads::Part& part : shared.parts()) {
    if (part.reader == rank) {
      add_reads(checkpoint, *part.wanted, part.box, reads);
    }
  }
  std::sort(reads.begin(), reads.end(), [](const Read& a, const Read& b) {
    return a.extent->file != b.extent->file ? a.extent->file < b.extent->file
                                            : a.extent->byte_offset < b.extent->byte_offset;
  });
  return reads;
}

/// All ranks learn all lines; rank by rank, and no line twice.
std::vector<std::string> gather_lines(const std::vector<std::string>& mine,
                                      comm::Communicator& communicator) {
  const std::int64_t count = mine.size();
  if (comm::all_reduce_scalar(communicator, count, comm::ReduceOp::max) == 0) {
    return {};
  }
  std::vector<std::string> lines;
  const auto add = [&](std::string_view line) {
    if (!line.empty() && std::find(lines.begin(), lines.end(), line) == lines.end()) {
      lines.emplace_back(line);
    }
  };
  for (const std::string& text :
       comm::all_gather_text(communicator, fmt::format("{}", fmt::join(mine, "\n")))) {
    std::string_view rest = text;
    for (std::size_t end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
      add(rest.substr(0, end));
      rest.remove_prefix(end + 1);
    }
    add(rest);
  }
  return lines;
}

/// Extents by their file, in the order of the index.
std::vector<std::vector<const StoredExtent*>> extents_of_files(const CheckpointContents& contents) {
  std::vector<std::vector<const StoredExtent*>> of_file(contents.manifest.files.size());
  for (const StoredExtent& extent : contents.index.extents) {
    of_file[extent.file].push_back(&extent);
  }
  return of_file;
}

/// Reads one payload file whole, each byte once. @param extents  of the file
Defect file_damage(const CheckpointContents& contents, std::size_t file,
                   std::span<const StoredExtent* const> extents, ExtentReader& reader,
                   std::vector<std::string>& damage) {
  const StoredFile& expected = contents.manifest.files[file];
  const CrcTable& table = contents.index.tables[file];
  std::vector<FileRegion> regions{{table.byte_offset, table.chunks * 4, expected.table_crc32c}};
  bool extents_are_good = true;
  for (const StoredExtent* const extent : extents) {
    regions.push_back({extent->byte_offset, extent->bytes, 0});
    if (Defect defect = reader.check(*extent, regions.back().crc32c)) {
      extents_are_good = false;
      damage.push_back(std::move(*defect));
    }
  }
  if (!extents_are_good) {
    return std::nullopt;
  }
  for (FileRegion gap : gaps_between(regions, expected.bytes)) {
    if (Defect defect = reader.crc_of(file, gap.byte_offset, gap.bytes, gap.crc32c)) {
      return defect;
    }
    regions.push_back(gap);
  }
  if (crc_of_parts(std::move(regions)) != expected.crc32c) {
    return fmt::format(
        "{} is damaged in its HDF5 metadata (the CRC-32C of the file differs, those of its tensors "
        "hold)",
        expected.name);
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::string> differences(const Checkpoint& checkpoint,
                                     std::span<const WantedBox> wanted) {
  std::vector<std::string> lines;
  for (const WantedBox& box : wanted) {
    const StoredTensor* stored = checkpoint.find(box.id);
    if (stored == nullptr && box.or_zeros) {
      continue;
    }
    if (stored == nullptr) {
      lines.push_back(format_message("tensor {} is not in the checkpoint", box.id.str()));
    } else if (stored->shape != box.shape) {
      lines.push_back(
          format_message("tensor {} has shape {} in the checkpoint and {} in this model",
                         box.id.str(), stored->shape.str(), box.shape.str()));
    } else if (stored->dtype != box.data.dtype()) {
      lines.push_back(format_message("tensor {} is {} in the checkpoint and {} in this model",
                                     box.id.str(), name(stored->dtype), name(box.data.dtype())));
    }
  }
  return lines;
}

LoadReport load(const Checkpoint& checkpoint, std::span<const WantedBox> wanted,
                comm::Communicator& communicator, const DoneWith& done_with,
                const ReadSharing& sharing) {
  const std::vector<std::string> different =
      gather_lines(differences(checkpoint, wanted), communicator);
  if (!different.empty()) {
    throw UserError(ExitCode::config,
                    format_message("{}: the checkpoint is of another model; change [model] or "
                                   "choose another checkpoint:\n  {}",
                                   checkpoint.path().string(), fmt::join(different, "\n  ")));
  }
  std::vector<std::string> damage;
  ExtentReader reader(checkpoint.contents(), done_with);
  const std::vector<WantedBox> stored = stored_ones(checkpoint, wanted);
  SharedReads shared;
  const auto failure = comm::capture_failure([&] {
    shared = SharedReads(checkpoint, stored, sharing, communicator);
    for (const Read& read : plan_reads(checkpoint, stored, shared, communicator.rank())) {
      auto defect = reader.copy(*read.extent, read.part, read.wanted->box,
                                static_cast<std::byte*>(read.wanted->data.data()));
      if (defect && damage.size() < most_lines) {
        damage.push_back(std::move(*defect));
      }
    }
  });
  comm::throw_if_any_failed(communicator, failure);
  LoadReport report{gather_lines(damage, communicator), reader.bytes_read()};
  if (report.intact()) {
    shared.exchange(communicator, done_with);
  }
  return report;
}

std::vector<std::string> verify(const Checkpoint& checkpoint, comm::Communicator& communicator,
                                const std::function<void(std::int64_t bytes)>& on_read) {
  const CheckpointContents& contents = checkpoint.contents();
  std::vector<std::string> damage;
  ExtentReader reader(contents, {}, on_read);
  const auto failure = comm::capture_failure([&] {
    const std::size_t ranks = communicator.size();
    const std::size_t rank = communicator.rank();
    const auto of_file = extents_of_files(contents);
    for (std::size_t file = rank; file < contents.manifest.files.size(); file += ranks) {
      if (auto defect = file_damage(contents, file, of_file[file], reader, damage)) {
        damage.push_back(std::move(*defect));
      }
    }
    if (rank == 0 && damage.empty()) {  // of damaged tensors the digests say nothing
      damage = identity_damage(contents.manifest, contents.index);
    }
  });
  comm::throw_if_any_failed(communicator, failure);
  return gather_lines(damage, communicator);
}

}  // namespace fourfold::io
