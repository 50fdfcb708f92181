// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "format/least_loaded.hpp"
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
#include <numeric>
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
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>{},
                           [&](std::size_t tensor) { return bytes[tensor]; });
  std::vector<std::int64_t> load(processes, 0);
  LeastLoaded least(load);
  std::vector<int> process_of_tensor(bytes.size());
  for (const std::size_t tensor : order) {
    process_of_tensor[tensor] = least.give(RankSet::all(processes), bytes[tensor]);
  }
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
      throw UserError(
          ExitCode::cannot_write,
          format_message("{}: exists already, with another state or cut otherwise, and steps "
                         "are never overwritten; choose another folder",
                         folder.string()));
    }
    complete_step(folder.parent_path(), request.step, request.identity, existing.manifest_text,
                  ask);
    found = 1;
  });
  return comm::all_reduce_scalar(communicator, found, comm::ReduceOp::max) != 0;
}

class StreamedStep {
 public:
  StreamedStep(const std::filesystem::path& directory, const StreamedSave& request,
               const SaveJob& job, comm::Communicator& communicator)
      : directory_(directory),
        request_(request),
        job_(job),
        communicator_(communicator),
        division_(division_of(job, communicator.size())) {
    first_rank_writes(communicator, [&] {
      folder_.emplace(directory, request.step, job.room(), word_of(request), request.goes_on);
    });
    path_ =
        comm::broadcast_text(communicator, folder_ ? folder_->path().string() : std::string(), 0);
  }

  void write(TensorSource& source) {
    // write_together() is a barrier as well: all have read the journals before one is written to.
    write_together(communicator_,
                   [&] { done_before_ = read_journals(path_, job_.plan.extents.size()); });
    auto failure = comm::capture_failure([&] {
      const Targets targets = prepare_files();
      WriteJournal journal(path_, communicator_.rank());
      TensorStream stream(job_, path_, source, journal, request_.part_bytes);
      write_tensors(targets, stream);
      for (const auto& [extent, written] : stream.finish()) {
        mine_[extent] = written;
      }
      journal.close();
    });
    if (failure && request_.goes_on) {
      failure->message +=
          fmt::format("; what is done is kept in {}, and the same command goes on from there",
                      (directory_ / path_.filename()).string());
    }
    comm::throw_if_any_failed(communicator_, failure);
  }

  /// @param ask  on rank 0
  void publish(const std::filesystem::path& directory, const AskLease& ask) {
    std::optional<PayloadFrame> frame;  // one at a time: there may be thousands
    const std::vector<WrittenPayload> files = gather_written(
        job_, division_, mine_,
        [&](std::size_t file) -> const PayloadFrame& {
          return frame.emplace(job_, job_.files[file]);
        },
        communicator_);
    first_rank_writes(communicator_, [&] {
      ask();
      remove_journals(path_);
      publish_step(*folder_, directory, job_, files, {}, ask, request_.identity);
    });
  }

 private:
  using Targets = std::map<std::size_t, std::vector<TensorStream::Target>>;  ///< by tensor

  /// Gives the files that this process leads their frames, and finds where its extents lie.
  Targets prepare_files() {
    Targets targets;
    for (std::size_t file = 0; file < job_.files.size(); ++file) {
      const PlannedFile& planned = job_.files[file];
      const PayloadFrame frame(job_, planned);
      if (division_.leader_of_file[file] == communicator_.rank()) {
        OutputFile output = OutputFile::open_or_create(path_ / planned.name);
        frame.write(output);
        output.sync();
        output.close();
      }
      for (std::size_t position = 0; position < planned.extents.size(); ++position) {
        const std::size_t extent = planned.extents[position];
        if (division_.process_of_extent[extent] != communicator_.rank()) {
          continue;
        }
        total_bytes_ += job_.bytes_of(extent);
        if (const auto done = done_before_.find(extent); done != done_before_.end()) {
          mine_.insert(*done);
          done_bytes_ += job_.bytes_of(extent);
          continue;
        }
        const StoredExtent& stored = frame.extent(position);
        targets[stored.tensor].push_back({extent, planned.name, stored.byte_offset,
                                          frame.table_entry_offset(stored.first_chunk)});
      }
    }
    return targets;
  }

  void write_tensors(const Targets& targets, TensorStream& stream) {
    const auto tell = [&](std::int64_t bytes) {
      done_bytes_ += bytes;
      if (request_.progress) {
        request_.progress(std::min(done_bytes_, total_bytes_), total_bytes_);
      }
    };
    for (const auto& [tensor, extents] : targets) {
      stream.write(job_.tensors[tensor], extents, tell);
    }
  }

  const std::filesystem::path& directory_;
  const StreamedSave& request_;
  const SaveJob& job_;
  comm::Communicator& communicator_;
  Division division_;
  std::optional<TemporaryStep> folder_;  ///< on rank 0
  std::filesystem::path path_;
  WrittenExtents done_before_;  ///< by an earlier attempt, of all processes
  WrittenExtents mine_;
  std::int64_t done_bytes_ = 0;
  std::int64_t total_bytes_ = 0;
};

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
    StreamedStep step(directory, request, job, communicator);
    step.write(source);
    step.publish(directory, ask);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {folder, job.payload_bytes(), elapsed.count()};
}

}  // namespace fourfold::io
