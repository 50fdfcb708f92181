// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "reshard/tensor_stream.hpp"

#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::io {
namespace {

constexpr std::size_t most_open_files = 128;
/// So much of what it wrote an attempt that is killed may lose.
constexpr std::int64_t unnoted_parts = 4;

}  // namespace

TensorStream::TensorStream(const SaveJob& job, const std::filesystem::path& folder,
                           TensorSource& source, WriteJournal& journal, std::int64_t part_bytes)
    : job_(job), source_(source), journal_(journal), part_bytes_(part_bytes), folder_(folder) {}

/// Opens a file, or makes it; good until the next call.
OutputFile& TensorStream::use(const std::string& name) {
  auto found = files_.find(name);
  if (found == files_.end()) {
    if (files_.size() == most_open_files) {
      close_files();
    }
    found = files_.emplace(name, OutputFile::open_or_create(folder_ / name)).first;
  }
  return found->second;
}

/// Each is looked at, and synced first: whoever opens it again may not be told of what could not be
/// written. Its pages leave the page cache: they serve the next bytes, and what else the machine
/// has cached stays.
void TensorStream::close_files() {
  for (auto& [name, file] : files_) {
    file.sync();
    file.forget_pages();
    file.close();
  }
  files_.clear();
}

/// Boxes that follow one another in the flat order of the tensor. A box whose slowest dims are
/// whole rows costs the fewest reads, so parts end at the borders of the largest rows that fit.
std::vector<Box> TensorStream::parts_of(const TensorLayout& layout) const {
  FOURFOLD_EXPECT(layout.shape.elements() > 0);
  const std::int64_t element_bytes = size_in_bytes(layout.dtype);
  const std::int64_t most = std::max<std::int64_t>(1, part_bytes_ / element_bytes);
  std::int64_t row = layout.shape.elements();
  for (std::size_t dim = 0; dim < layout.shape.rank() && row > most; ++dim) {
    row /= layout.shape[dim];
  }
  const std::int64_t step = row <= most ? most / row * row : most;
  std::vector<Box> parts;
  for (std::int64_t begin = 0; begin < layout.shape.elements(); begin += step) {
    const std::int64_t count = std::min(step, layout.shape.elements() - begin);
    const std::vector<Box> boxes = boxes_of_flat_range(layout.shape, {begin, count});
    parts.insert(parts.end(), boxes.begin(), boxes.end());
  }
  return parts;
}

void TensorStream::write(const TensorLayout& layout, std::span<const Target> targets,
                         const std::function<void(std::int64_t bytes)>& on_read) {
  const std::size_t element_bytes = size_in_bytes(layout.dtype);
  std::vector<ExtentWriter> writers;
  for (const Target& target : targets) {
    writers.emplace_back(layout.dtype, layout.shape, job_.plan.extents[target.extent].box,
                         target.byte_offset);
  }
  for (const Box& part : parts_of(layout)) {
    part_.resize(part.elements() * element_bytes);
    bool is_read = false;
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto common = intersect(part, job_.plan.extents[targets[i].extent].box);
      if (!common) {
        continue;
      }
      if (!is_read) {
        source_.read(layout.id, part, TensorView(part_.data(), layout.dtype, part.extent));
        is_read = true;
      }
      append(writers[i], targets[i].file, part, *common, element_bytes);
    }
    on_read(std::ssize(part_));
  }
  for (std::size_t i = 0; i < targets.size(); ++i) {
    use(targets[i].file).write_at(targets[i].table_offset, std::as_bytes(writers[i].table()));
    unnoted_.emplace(targets[i].extent, writers[i].result());
    unnoted_bytes_ += job_.bytes_of(targets[i].extent);
  }
  if (unnoted_bytes_ >= unnoted_parts * part_bytes_) {
    note_written();
  }
}

/// The common elements follow one another in the extent; in the part they may lie apart.
void TensorStream::append(ExtentWriter& writer, const std::string& file, const Box& part,
                          const Box& common, std::size_t element_bytes) {
  OutputFile& output = use(file);
  runs_.clear();
  for_each_run(part, common, common, [&](const Run& run) {
    const std::span<const std::byte> bytes(part_.data() + run.source_element * element_bytes,
                                           run.elements * element_bytes);
    if (bytes.size() >= chunk_bytes) {
      writer.append(output, runs_);
      runs_.clear();
      writer.append(output, bytes);
      return;
    }
    runs_.insert(runs_.end(), bytes.begin(), bytes.end());
    if (runs_.size() >= chunk_bytes) {
      writer.append(output, runs_);
      runs_.clear();
    }
  });
  writer.append(output, runs_);
}

void TensorStream::note_written() {
  close_files();
  journal_.note(unnoted_);
  written_.merge(unnoted_);
  unnoted_.clear();
  unnoted_bytes_ = 0;
}

std::map<std::size_t, WrittenExtent> TensorStream::finish() {
  note_written();
  return std::move(written_);
}

}  // namespace fourfold::io
