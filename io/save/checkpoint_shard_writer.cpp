// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/checkpoint_shard_writer.hpp"

#include "disk/file.hpp"
#include "payload/extent_writer.hpp"
#include "save/step_save.hpp"
#include "save/written_exchange.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <thread>

namespace fourfold::io {

namespace {

/// Finds the piece of every held box of this rank.
HeldData match_pieces(const SaveRequest& request, int rank) {
  std::map<TensorId, std::vector<const Piece*>> pieces;
  for (const Piece& piece : request.pieces) {
    pieces[piece.id].push_back(&piece);
  }
  HeldData data;
  for (const TensorLayout& layout : request.tensors) {
    const std::vector<const Piece*>& candidates = pieces[layout.id];
    data.emplace_back(layout.boxes.size(), nullptr);
    for (std::size_t box = 0; box < layout.boxes.size(); ++box) {
      const HeldBox& held = layout.boxes[box];
      if (held.box.empty() || !held.holders.contains(rank)) {
        continue;
      }
      const auto piece =
          std::find_if(candidates.begin(), candidates.end(),
                       [&](const Piece* candidate) { return candidate->box == held.box; });
      if (piece == candidates.end() || (*piece)->data.dtype() != layout.dtype ||
          (*piece)->data.elements() != held.box.elements()) {
        throw UserError(ExitCode::internal,
                        format_message("checkpoint: no piece of the right size and dtype was "
                                       "passed for box {} of tensor {}",
                                       held.box.str(), layout.id.str()));
      }
      data.back()[box] = static_cast<const std::byte*>((*piece)->data.data());
    }
  }
  return data;
}

/// A save writes with as many ranks as hold: each its own extents, the first in a file its frame.
Division division_of(const SaveJob& job) {
  Division division;
  for (const PlannedExtent& extent : job.plan.extents) {
    division.process_of_extent.push_back(extent.writer);
  }
  for (const PlannedFile& file : job.files) {
    division.leader_of_file.push_back(job.plan.extents[file.extents.front()].writer);
  }
  return division;
}

/// A job of which all ranks have made the same.
SaveJob agreed_job(const std::filesystem::path& directory, const PlanOptions& options,
                   const SaveRequest& request, comm::Communicator& communicator) {
  agree_on_plan(request, options, directory, communicator);
  return {request, options, communicator.size()};
}

}  // namespace

CheckpointShardWriter::CheckpointShardWriter(const std::filesystem::path& directory,
                                             const PlanOptions& plan, const DoneWith& done_with,
                                             const SaveRequest& request,
                                             comm::Communicator& communicator)
    : done_with_(done_with),
      has_arrived_(request.has_arrived),
      job_(agreed_job(directory, plan, request, communicator)),
      division_(division_of(job_)),
      rank_(communicator.rank()) {
  HeldData data;
  write_together(communicator, [&] { data = match_pieces(request, rank_); });
  replicas_ = replicas_of(request.tensors, data);
  if (!is_arriving()) {
    hash_replicas(replicas_, done_with_);
    compare_replicas(replicas_, communicator);
  }
  find_own(data);
}

bool CheckpointShardWriter::await_pieces() {
  constexpr std::chrono::microseconds between_looks{200};
  while (!has_arrived_()) {
    if (is_given_up_) {
      return false;
    }
    std::this_thread::sleep_for(between_looks);
  }
  hash_replicas(replicas_, done_with_);
  return true;
}

void CheckpointShardWriter::find_own(const HeldData& data) {
  for (std::size_t file = 0; file < job_.files.size(); ++file) {
    const std::vector<std::size_t>& extents = job_.files[file].extents;
    for (std::size_t position = 0; position < extents.size(); ++position) {
      const PlannedExtent& planned = job_.plan.extents[extents[position]];
      if (planned.writer != rank_) {
        continue;
      }
      const TensorLayout& layout = job_.tensors[planned.tensor];
      std::int64_t first_element = 0;  // a part is contiguous in the box it was cut from
      for_each_run(layout.boxes[planned.held_box].box, planned.box, planned.box,
                   [&](const Run& run) { first_element = run.source_element; });
      own_.push_back(
          {extents[position], position,
           data[planned.tensor][planned.held_box] + first_element * size_in_bytes(layout.dtype)});
      own_file_ = file;
      own_bytes_ += job_.bytes_of(extents[position]);
    }
  }
}

void CheckpointShardWriter::stage(std::byte* memory) {
  for (OwnExtent& own : own_) {
    const std::size_t bytes = job_.bytes_of(own.extent);
    std::memcpy(memory, own.data, bytes);
    if (done_with_) {
      done_with_(own.data, bytes);
    }
    own.data = memory;
    memory += bytes;
  }
  is_staged_ = true;
}

void CheckpointShardWriter::write(const std::filesystem::path& folder) {
  if (own_.empty()) {
    return;
  }
  const PlannedFile& planned = job_.files[own_file_];
  frame_.emplace(job_, planned);
  OutputFile file = OutputFile::open_or_create(folder / planned.name);
  if (division_.leader_of_file[own_file_] == rank_) {
    frame_->write(file);
  }
  std::vector<std::uint32_t> table;  // of this rank's extents, which follow one another
  for (const OwnExtent& own : own_) {
    const TensorLayout& layout = job_.layout_of(own.extent);
    const StoredExtent& extent = frame_->extent(own.position);
    ExtentWriter writer(layout.dtype, layout.shape, extent.box, extent.byte_offset);
    const std::size_t bytes = extent.bytes;
    for (std::size_t begin = 0; begin < bytes; begin += chunk_bytes) {
      if (is_given_up_) {
        return;
      }
      const std::span chunk(own.data + begin, std::min<std::size_t>(chunk_bytes, bytes - begin));
      writer.append(file, chunk);
      if (done_with_ && !is_staged_) {
        done_with_(chunk.data(), chunk.size());
      }
    }
    written_.emplace(own.extent, writer.result());
    table.insert(table.end(), writer.table().begin(), writer.table().end());
  }
  file.write_at(frame_->table_entry_offset(frame_->extent(own_.front().position).first_chunk),
                std::as_bytes(std::span(table)));
  file.sync();
  file.close();
}

void CheckpointShardWriter::gather(comm::Communicator& communicator) {
  if (is_arriving()) {
    compare_replicas(replicas_, communicator);
  }
  files_ = gather_written(
      job_, division_, written_, [&](std::size_t) -> const PayloadFrame& { return *frame_; },
      communicator);
}

SaveReport CheckpointStore::save(const SaveRequest& request, comm::Communicator& communicator) {
  FOURFOLD_EXPECT(!request.has_arrived);
  const Stopwatch watch;
  StepSave save(*this, request, communicator);
  write_together(communicator, [&] { save.write(); });
  save.share().gather(communicator);
  first_rank_writes(communicator, [&] { save.publish(); });
  return {save.folder(), save.share().job().payload_bytes(), watch.seconds()};
}

}  // namespace fourfold::io
