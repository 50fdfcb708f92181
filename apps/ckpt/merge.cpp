// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/array_file.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/io/tensor_source.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/train/load_run.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <system_error>
#include <vector>

namespace fourfold::ckpt {
namespace {

/// A scalar is shown as one element.
Shape shown_shape(const io::StoredTensor& tensor) {
  return tensor.shape.rank() == 0 ? Shape{1} : tensor.shape;
}

std::string path_of(const io::StoredTensor& tensor) {
  return "/" + tensor.id.str();
}

/// Tensors without elements have nothing to show.
std::vector<io::StoredTensor> shown_tensors(const io::Checkpoint& checkpoint) {
  std::vector<io::StoredTensor> shown;
  std::ranges::copy_if(checkpoint.tensors(), std::back_inserter(shown),
                       [](const io::StoredTensor& tensor) { return tensor.shape.elements() > 0; });
  return shown;
}

/// What is state besides the tensors, in words.
std::vector<io::ArrayFile::Attribute> attributes_of(const io::Checkpoint& checkpoint) {
  std::vector<io::ArrayFile::Attribute> attributes{{"format", "fourfold merged checkpoint 1"},
                                                   {"step", std::to_string(checkpoint.step())},
                                                   {"identity", checkpoint.identity()}};
  const io::CheckpointScalars& scalars = checkpoint.scalars();
  for (const auto& [name, value] : scalars.integers) {
    attributes.emplace_back(name, std::to_string(value));
  }
  for (const auto& [name, value] : scalars.reals) {
    attributes.emplace_back(name, fmt::format("{}", value));
  }
  for (const auto& [name, text] : scalars.texts) {
    attributes.emplace_back(name, text);
  }
  return attributes;
}

/// Rows of dim 0, as many at a time as the memory holds; one at least.
void copy_tensor(const io::StoredTensor& tensor, std::int64_t memory_bytes,
                 io::TensorSource& source, io::ArrayFile& file,
                 const std::function<void(std::int64_t bytes)>& on_copied) {
  const Shape shown = shown_shape(tensor);
  const auto row_bytes = io::payload_bytes(tensor) / shown[0];
  const std::int64_t most = std::clamp<std::int64_t>(memory_bytes / row_bytes, 1, shown[0]);
  std::vector<std::byte> memory(most * row_bytes);
  for (std::int64_t first = 0; first < shown[0]; first += most) {
    Box box = Box::whole(tensor.shape);
    Shape rows = shown;
    rows[0] = std::min(most, shown[0] - first);
    if (tensor.shape.rank() > 0) {
      box.offset[0] = first;
      box.extent[0] = rows[0];
    }
    const TensorView view(memory.data(), tensor.dtype, rows);
    source.read(tensor.id, box, view);
    file.write_rows(path_of(tensor), first, view);
    on_copied(rows[0] * row_bytes);
  }
}

/// A link that leads nowhere is there as well: somebody made it.
void refuse_existing(const std::string& file) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(file, ignored))) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: exists already; remove it or choose another name", file));
  }
}

void merge_into(const Request& request, const io::Checkpoint& checkpoint,
                program::Progress& progress, comm::Communicator& self) {
  const std::vector<io::StoredTensor> tensors = shown_tensors(checkpoint);
  std::vector<io::ArrayToWrite> arrays;
  for (const io::StoredTensor& tensor : tensors) {
    arrays.push_back({path_of(tensor), tensor.dtype, shown_shape(tensor)});
  }
  io::ArrayFile file(request.to, arrays, attributes_of(checkpoint), self);
  io::CheckpointSource source(checkpoint);
  std::int64_t done_bytes = 0;
  for (const io::StoredTensor& tensor : tensors) {
    copy_tensor(tensor, request.memory_bytes, source, file, [&](std::int64_t bytes) {
      done_bytes += bytes;
      progress.show(done_bytes, io::payload_bytes(checkpoint));
    });
  }
  file.publish_as_new();
  progress.finish();
  if (!request.json) {
    program::print("{}: {} tensors, {}\n", request.to, tensors.size(),
                   telemetry::bytes_text(io::payload_bytes(checkpoint)));
  }
}

}  // namespace

ExitCode merge(const Request& request) {
  refuse_existing(request.to);
  io::refuse_place_in_step(request.to);
  comm::run_ranks(1, [&](comm::Communicator& self) {
    program::Progress progress(request.dry_run ? ProgressMode::none : request.progress, "merged");
    const io::Checkpoint checkpoint = train::open_named_checkpoint(request.checkpoint, self);
    const auto start = std::chrono::steady_clock::now();
    if (!request.dry_run) {
      merge_into(request, checkpoint, progress, self);
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    if (request.json) {
      program::print_text(written_json({.path = request.to,
                                        .mesh = {},
                                        .seconds = elapsed.count(),
                                        .dry_run = request.dry_run},
                                       checkpoint) +
                          "\n");
    }
    if (request.json || !request.dry_run) {
      return;
    }
    program::print("{} -> {}: {} tensors, {}; nothing was written (--dry-run)\n",
                   checkpoint.path().string(), request.to, shown_tensors(checkpoint).size(),
                   telemetry::bytes_text(io::payload_bytes(checkpoint)));
  });
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
