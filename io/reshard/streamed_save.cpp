// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "payload/payload_frame.hpp"
#include "payload/save_job.hpp"
#include "reshard/tensor_stream.hpp"
#include "reshard/write_journal.hpp"
#include "save/step_commit.hpp"
#include "save/step_save.hpp"
#include "save/written_exchange.hpp"
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/hdf5_version.hpp>
#include <fourfold/io/retention.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/io/streamed_save.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

namespace fourfold::io {
namespace {

SaveRequest save_request(const StreamedSave& request) {
  return {.step = request.step,
          .mesh = request.mesh,
          .scalars = request.scalars,
          .tensors = request.tensors,
          .pieces = {}};
}

/// Whole tensors, the largest first, to the process that has least; files in turn.
Division division_of(const SaveJob& job, int processes) {
  std::vector<std::int64_t> bytes(job.tensors.size(), 0);
  for (std::size_t i = 0; i < job.plan.extents.size(); ++i) {
    bytes[job.plan.extents[i].tensor] += job.bytes_of(i);
  }
  const RankSet all = RankSet::all(processes);
  std::vector<std::int64_t> load(processes, 0);
  const std::vector<int> process_of_tensor = share_out(
      bytes, [&](std::size_t) -> const RankSet& { return all; }, load);
  Division division;
  for (const PlannedExtent& extent : job.plan.extents) {
    division.process_of_extent.push_back(process_of_tensor[extent.tensor]);
  }
  for (int file = 0; file < std::ssize(job.files); ++file) {
    division.leader_of_file.push_back(file % processes);
  }
  return division;
}

/// One word for all that decides which bytes go where: an attempt goes on with what one of the same
/// word has left.
std::string word_of(const StreamedSave& request) {
  Fingerprint fingerprint;
  fingerprint.add(format_version);
  fingerprint.add(std::string_view(hdf5_version()));  // which places the datasets
  add_run_facts(fingerprint, save_request(request));
  fingerprint.add(std::string_view(request.identity));
  fingerprint.add(std::string_view(
      plan_fingerprint(request.tensors, static_cast<int>(request.mesh.ranks()), request.plan)));
  return fingerprint.str().substr(0, 16);
}

/// Whether a step that is there is the one that the job would write.
bool is_same(const CheckpointContents& contents, const StreamedSave& request, const SaveJob& job) {
  if (request.identity.empty() || contents.manifest.identity != request.identity ||
      contents.manifest.mesh != request.mesh ||
      contents.index.extents.size() != job.plan.extents.size()) {
    return false;
  }
  std::map<std::string, std::size_t> tensors;
  for (std::size_t tensor = 0; tensor < contents.index.tensors.size(); ++tensor) {
    tensors.emplace(contents.index.tensors[tensor].id.str(), tensor);
  }
  for (const PlannedFile& file : job.files) {
    for (const std::size_t extent : file.extents) {
      const std::size_t tensor = tensors.at(job.layout_of(extent).id.str());
      const std::size_t row = contents.first_extent[tensor] + job.numbers[extent];
      if (row >= contents.first_extent[tensor + 1] ||
          contents.index.extents[row].box != job.plan.extents[extent].box ||
          contents.manifest.files[contents.index.extents[row].file].name != file.name) {
        return false;
      }
    }
  }
  return true;
}

/// Whether the step is there as it is wanted. Rank 0 looks. Collective.
/// @throws UserError (cannot_write) on all when it is there otherwise
bool is_there(const std::filesystem::path& folder, const StreamedSave& request, const SaveJob& job,
              const AskLease& ask, comm::Communicator& communicator) {
  std::int64_t found = 0;
  first_rank_writes(communicator, [&] {
    if (kind_of(folder) == EntryKind::missing) {
      return;
    }
    const Inspection existing = inspect(folder);
    if (existing.defect || !is_same(*existing.contents, request, job)) {
      throw UserError(ExitCode::cannot_write,
                      format_message("{}: exists already, with another state or cut otherwise, and "
                                     "steps are never overwritten; choose another folder",
                                     folder.string()));
    }
    complete_step(folder.parent_path(), request.step, request.identity, existing.manifest_text,
                  ask);
    found = 1;
  });
  return comm::all_reduce_scalar(communicator, found, comm::ReduceOp::max) != 0;
}

/// Gives the files that this process leads their frames, and writes its extents but for those that
/// are done already. @param done  by an earlier attempt, of all processes
/// @return what is in place of this process's extents
WrittenExtents write_share(const std::filesystem::path& folder, const StreamedSave& request,
                           const SaveJob& job, const Division& division, const WrittenExtents& done,
                           TensorSource& source, int process) {
  WrittenExtents mine;
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
  std::map<std::size_t, std::vector<TensorStream::Target>> targets;  // by tensor
  for (std::size_t file = 0; file < job.files.size(); ++file) {
    const PlannedFile& planned = job.files[file];
    const PayloadFrame frame(job, planned);
    if (division.leader_of_file[file] == process) {
      OutputFile output = OutputFile::open_or_create(folder / planned.name);
      frame.write(output);
      output.sync();
      output.close();
    }
    for (std::size_t position = 0; position < planned.extents.size(); ++position) {
      const std::size_t extent = planned.extents[position];
      if (division.process_of_extent[extent] != process) {
        continue;
      }
      total_bytes += job.bytes_of(extent);
      if (const auto before = done.find(extent); before != done.end()) {
        mine.insert(*before);
        done_bytes += job.bytes_of(extent);
        continue;
      }
      const StoredExtent& stored = frame.extent(position);
      targets[stored.tensor].push_back(
          {extent, planned.name, stored.byte_offset, frame.table_entry_offset(stored.first_chunk)});
    }
  }
  WriteJournal journal(folder, process);
  TensorStream stream(job, folder, source, journal, request.part_bytes);
  for (const auto& [tensor, extents] : targets) {
    stream.write(job.tensors[tensor], extents, [&](std::int64_t bytes) {
      done_bytes += bytes;
      if (request.progress) {
        request.progress(std::min(done_bytes, total_bytes), total_bytes);
      }
    });
  }
  mine.merge(stream.finish());
  journal.close();
  return mine;
}

/// Writes a step that is not there and publishes it. Collective. @param ask  on rank 0
void write_step(const std::filesystem::path& directory, const StreamedSave& request,
                const SaveJob& job, TensorSource& source, const AskLease& ask,
                comm::Communicator& communicator) {
  const Division division = division_of(job, communicator.size());
  std::optional<TemporaryStep> folder;  // on rank 0
  first_rank_writes(communicator, [&] {
    folder.emplace(directory, request.step, job.room(), word_of(request), request.goes_on);
  });
  const std::filesystem::path path =
      comm::broadcast_text(communicator, folder ? folder->path().string() : std::string(), 0);
  WrittenExtents done;
  // A barrier as well: all have read the journals before one is written to.
  write_together(communicator, [&] { done = read_journals(path, job.plan.extents.size()); });
  WrittenExtents mine;
  auto failure = comm::capture_failure(
      [&] { mine = write_share(path, request, job, division, done, source, communicator.rank()); });
  if (failure && request.goes_on) {
    failure->message +=
        fmt::format("; what is done is kept in {}, and the same command goes on from there",
                    (directory / path.filename()).string());
  }
  comm::throw_if_any_failed(communicator, failure);
  std::optional<PayloadFrame> frame;  // one at a time: there may be thousands
  const std::vector<WrittenPayload> files = gather_written(
      job, division, mine,
      [&](std::size_t file) -> const PayloadFrame& { return frame.emplace(job, job.files[file]); },
      communicator);
  first_rank_writes(communicator, [&] {
    ask();
    remove_journals(path);
    publish_step(*folder, directory, job, files, {}, ask, request.identity);
  });
}

}  // namespace

SaveReport save_streamed(const std::filesystem::path& directory, const StreamedSave& request,
                         TensorSource& source, comm::Communicator& communicator) {
  const auto start = std::chrono::steady_clock::now();
  agree_on_plan(save_request(request), request.plan, directory, communicator);
  const SaveJob job(save_request(request), request.plan, static_cast<int>(request.mesh.ranks()));
  const std::filesystem::path folder = directory / step_folder_name(request.step);
  std::optional<DirectoryLease> lease;  // a run that starts there would sweep what is unfinished
  first_rank_writes(communicator, [&] {
    refuse_step_as_directory(directory);
    refuse_foreign_latest(directory);
    lease.emplace(directory, LeaseHolder::this_process(),
                  LeaseOptions{.gone_at_signal = !request.goes_on});
    if (!request.goes_on) {
      warn_of_leftovers(remove_leftovers(directory));
    }
  });
  const AskLease ask = [&] { lease->check(); };  // on rank 0
  if (!is_there(folder, request, job, ask, communicator)) {
    write_step(directory, request, job, source, ask, communicator);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {folder, job.payload_bytes(), elapsed.count()};
}

}  // namespace fourfold::io
