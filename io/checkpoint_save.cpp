// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "agreement.hpp"
#include "checkpoint_contents.hpp"
#include "checkpoint_read.hpp"
#include "file.hpp"
#include "index_file.hpp"
#include "manifest.hpp"
#include "payload_writer.hpp"
#include "plan_agreement.hpp"
#include "replicas.hpp"
#include "save_job.hpp"
#include "step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/crc32c.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <numeric>

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
                        fmt::format("checkpoint: no piece of the right size and dtype was passed "
                                    "for box {} of tensor {}",
                                    held.box.str(), layout.id.str()));
      }
      data.back()[box] = static_cast<const std::byte*>((*piece)->data.data());
    }
  }
  return data;
}

std::vector<PayloadExtent> own_extents(const SaveJob& job, const HeldData& data, int rank) {
  std::vector<PayloadExtent> extents;
  for (std::size_t i = 0; i < job.plan.extents.size(); ++i) {
    const PlannedExtent& planned = job.plan.extents[i];
    if (planned.writer != rank) {
      continue;
    }
    const TensorLayout& layout = job.request.tensors[planned.tensor];
    const Box& held = layout.boxes[planned.held_box].box;
    std::int64_t first_element = 0;  // a part is contiguous in the box it was cut from
    for_each_run(held, planned.box, planned.box,
                 [&](const Run& run) { first_element = run.source_element; });
    extents.push_back({layout.id, job.numbers[i], layout.dtype, layout.shape, planned.box,
                       data[planned.tensor][planned.held_box] +
                           static_cast<std::size_t>(first_element) * size_in_bytes(layout.dtype)});
  }
  return extents;
}

/// Brings the words of all ranks to rank 0, in rank order. The counts follow from the plan.
std::vector<std::uint64_t> gather_words(const SaveJob& job, std::span<const std::uint64_t> mine,
                                        comm::Communicator& communicator) {
  std::vector<std::int64_t> send_counts(static_cast<std::size_t>(communicator.size()), 0);
  std::vector<std::int64_t> recv_counts(static_cast<std::size_t>(communicator.size()), 0);
  send_counts[0] = std::ssize(mine);
  for (int rank = 0; communicator.rank() == 0 && rank < communicator.size(); ++rank) {
    recv_counts[static_cast<std::size_t>(rank)] = word_count(job, rank);
  }
  std::vector<std::uint64_t> all(static_cast<std::size_t>(
      std::accumulate(recv_counts.begin(), recv_counts.end(), std::int64_t{0})));
  communicator
      .all_to_all(ConstTensorView(mine.data(), {std::ssize(mine)}), send_counts,
                  TensorView(all.data(), {std::ssize(all)}), recv_counts, {})
      .wait({});
  return all;
}

/// The text of the manifest that is there when the folder of the step holds the state of `manifest`
/// already.
std::optional<std::string> manifest_saved_already(const std::filesystem::path& directory,
                                                  const Manifest& manifest) {
  const std::filesystem::path folder = directory / step_folder_name(manifest.step);
  if (kind_of(folder) == EntryKind::missing) {
    return std::nullopt;
  }
  Inspection existing = inspect(folder);
  if (existing.defect || existing.contents->manifest.identity != manifest.identity) {
    throw UserError(ExitCode::cannot_write,
                    fmt::format("{}: exists already with other contents (another run saved here, "
                                "or this one went on from an older step), and steps are never "
                                "overwritten; move the folder away or choose another directory",
                                folder.string()));
  }
  return std::move(existing.manifest_text);
}

struct Committed {
  std::string identity;
  std::string manifest_text;  ///< as it is in the folder of the step
};

Committed commit(TemporaryStep& step, const std::filesystem::path& directory, const SaveJob& job,
                 std::span<const std::uint64_t> words) {
  Manifest manifest;
  Index index;
  describe(job, words, manifest, index);
  if (auto text = manifest_saved_already(directory, manifest)) {
    return {manifest.identity, std::move(*text)};
  }
  const std::string bytes = index_bytes(manifest, index);
  manifest.index_bytes = bytes.size();
  manifest.index_crc32c = crc32c(std::as_bytes(std::span(bytes)));
  std::string text = manifest_text(manifest);
  step.commit(text, bytes);
  return {manifest.identity, std::move(text)};
}

/// A part of a save that ranks do alone and end together.
void together(comm::Communicator& communicator, const std::function<void()>& work) {
  auto failure = attempt(work);
  if (failure && failure->code == ExitCode::cannot_write) {
    failure->message += "; checkpoints that exist are untouched";
  }
  agree(communicator, failure);
}

/// A run that fell back to an older step comes by the damaged one again: it is set aside. An intact
/// step stays. Collective.
void make_room(const std::filesystem::path& directory, std::int64_t step,
               comm::Communicator& communicator) {
  const std::filesystem::path folder = directory / step_folder_name(step);
  bool exists = false;
  const Inspection found = share(
      [&] {
        exists = kind_of(folder) != EntryKind::missing;
        return exists ? inspect(folder) : no_checkpoint("missing");
      },
      communicator);
  exists =
      comm::all_reduce_scalar(communicator, std::int64_t{exists ? 1 : 0}, comm::ReduceOp::max) != 0;
  if (!exists) {
    return;
  }
  std::vector<std::string> damage;
  if (found.defect) {
    damage.push_back(*found.defect);
  } else {
    damage = verify(Checkpoint(found.contents), communicator);
  }
  together(communicator, [&] {
    if (communicator.rank() == 0 && !damage.empty()) {
      const std::filesystem::path aside = set_aside(directory, step);
      log::warning(
          fmt::format("{}: is damaged ({}) and was set aside as {} to save step {} "
                      "anew",
                      folder.string(), damage.front(), aside.filename().string(), step));
    }
  });
}

/// "step-000000008, step-000000010, ...": what was saved before the run went back behind it.
std::string later_steps(const std::filesystem::path& directory, std::int64_t step) {
  constexpr std::size_t shown = 3;
  std::vector<std::string> names;
  for (const std::int64_t other : steps_in(directory)) {
    if (other > step) {
      names.push_back(names.size() < shown ? step_folder_name(other) : "...");
    }
  }
  names.resize(std::min(names.size(), shown + 1));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// LATEST and retention: the step is safe already, so what fails here is only said.
void tidy(const std::filesystem::path& directory, std::int64_t step, const Committed& committed,
          int keep_last) {
  const auto warn = [](const std::string& what) {
    log::warning(fmt::format("the checkpoint is saved, but {}", what));
  };
  if (const auto failure = attempt(
          [&] { write_latest(directory, step, committed.identity, committed.manifest_text); })) {
    warn(failure->message);
  }
  if (const std::string later = later_steps(directory, step); !later.empty()) {
    warn(
        fmt::format("{} also holds later steps ({}), which stay and which a run that resumes from "
                    "the newest step would take; move them away, or name the step to resume from",
                    directory.string(), later));
  }
  std::vector<std::string> problems;
  const auto failure = attempt([&] { problems = remove_old_steps(directory, step, keep_last); });
  if (failure) {
    problems.push_back(failure->message);
  }
  for (const std::string& problem : problems) {
    warn("an older one could not be removed: " + problem);
  }
}

}  // namespace

SaveReport CheckpointStore::save(const SaveRequest& request, comm::Communicator& communicator) {
  const auto start = std::chrono::steady_clock::now();
  const int rank = communicator.rank();
  agree_on_plan(request, options_.plan, directory_, communicator);
  const SaveJob job(request, plan_save(request.tensors, communicator.size(), options_.plan),
                    communicator.size());
  HeldData data;
  together(communicator, [&] { data = match_pieces(request, rank); });
  compare_replicas(request.tensors, data, communicator, options_.done_with);
  make_room(directory_, request.step, communicator);

  std::optional<TemporaryStep> step;
  together(communicator, [&] {
    if (rank == 0) {
      step.emplace(directory_, request.step, job.payload_bytes());
    }
  });
  const std::filesystem::path folder =
      comm::broadcast_text(communicator, step ? step->path().string() : std::string(), 0);
  std::vector<std::uint64_t> words;
  together(communicator, [&] {
    const std::vector<PayloadExtent> extents = own_extents(job, data, rank);
    if (!extents.empty()) {
      words = words_of(write_payload_file(folder / payload_file_name(rank, communicator.size()),
                                          request.step, extents, options_.done_with));
    }
  });
  words = gather_words(job, words, communicator);
  Committed committed;
  together(communicator, [&] {
    if (rank == 0) {
      committed = commit(*step, directory_, job, words);
    }
  });
  if (rank == 0) {
    tidy(directory_, request.step, committed, options_.keep_last);
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {directory_ / step_folder_name(request.step),
          static_cast<std::int64_t>(job.payload_bytes()), elapsed.count()};
}

}  // namespace fourfold::io
