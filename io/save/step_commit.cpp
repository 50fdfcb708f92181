// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/step_commit.hpp"

#include "disk/file.hpp"
#include "format/checkpoint_contents.hpp"
#include "save/step_save.hpp"
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/io/digest.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::io {
namespace {

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
    throw UserError(
        ExitCode::cannot_write,
        format_message("{}: exists already with other contents (another run saved here, or this "
                       "one went on from an older step), and steps are never overwritten; move the "
                       "folder away or choose another directory",
                       folder.string()));
  }
  return std::move(existing.manifest_text);
}

/// "step-000000008, step-000000010, ...": what was saved before the run went back after it.
std::string later_steps(const std::filesystem::path& directory, std::int64_t step) {
  constexpr std::size_t shown = 3;
  std::vector<std::string> names;
  for (const std::int64_t other : list_steps(directory)) {
    if (other > step) {
      names.push_back(names.size() < shown ? step_folder_name(other) : "...");
    }
  }
  names.resize(std::min(names.size(), shown + 1));
  return fmt::format("{}", fmt::join(names, ", "));
}

void warn(const std::string& what) {
  log::warning(format_message("the checkpoint is saved, but {}", what));
}

/// The step is safe already, so what fails here is only said.
void name_latest(const std::filesystem::path& directory, std::int64_t step,
                 std::string_view identity, std::string_view manifest_text, const AskLease& ask) {
  if (const auto failure = comm::capture_failure(
          [&] { write_latest(directory, step, identity, manifest_text, ask); })) {
    warn(failure->message);
  }
}

/// LATEST and retention.
void tidy(const std::filesystem::path& directory, const SealedStep& committed,
          const Retention& retention, const AskLease& ask) {
  const std::int64_t step = committed.manifest.step;
  name_latest(directory, step, committed.manifest.identity, committed.manifest_text, ask);
  if (const std::string later = later_steps(directory, step); !later.empty()) {
    warn(
        fmt::format("{} also holds later steps ({}), which stay and which a run that resumes from "
                    "the newest step would take; move them away, or name the step to resume from",
                    directory.string(), later));
  }
  std::vector<std::string> problems;
  const auto failure = comm::capture_failure([&] {
    const std::vector<KnownStep> known = known_steps(directory, step, retention.keep_best > 0);
    problems = remove_steps(directory, steps_to_remove(known, retention), ask);
  });
  if (failure) {
    problems.push_back(failure->message);
  }
  for (const std::string& problem : problems) {
    warn("an older one could not be removed: " + problem);
  }
}

}  // namespace

bool make_way(const CheckpointStore& store, std::int64_t step, comm::Communicator& communicator) {
  const std::filesystem::path folder = store.directory() / step_folder_name(step);
  std::uint64_t looked_at = 0;
  std::int64_t exists = 0;
  const Inspection found = inspect_for_all(
      [&] {
        looked_at = number_of(folder);
        exists = kind_of(folder) != EntryKind::missing ? 1 : 0;
        return exists != 0 ? inspect(folder) : no_checkpoint("missing");
      },
      communicator);
  if (comm::all_reduce_scalar(communicator, exists, comm::ReduceOp::max) == 0) {
    return false;
  }
  std::vector<std::string> damage;
  if (found.defect) {
    damage.push_back(*found.defect);
  } else if (store.was_damaged(step)) {
    damage.emplace_back("a rank could not load it when the run started");
  } else {
    damage = verify(Checkpoint(found.contents), communicator);
  }
  first_rank_writes(communicator, [&] {
    if (!damage.empty()) {
      const std::filesystem::path aside =
          set_aside(store.directory(), step, looked_at, [&] { store.check_lease(); });
      log::warning(
          format_message("{}: is damaged ({}) and was set aside as {} to save step {} anew",
                         folder.string(), damage.front(), aside.filename().string(), step));
    }
  });
  return damage.empty();
}

void publish_step(TemporaryStep& folder, const std::filesystem::path& directory, const SaveJob& job,
                  std::span<const WrittenPayload> files, const Retention& retention,
                  const AskLease& ask, std::string_view identity) {
  SealedStep sealed = seal_step(job, files);
  const Manifest& manifest = sealed.manifest;
  if (!identity.empty() && manifest.identity != identity) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message("{}: what was written is not the state that it was to be (identity {} "
                       "instead of {}: memory or a disk is faulty); nothing was saved, verify the "
                       "original and try again on another node",
                       directory.string(), manifest.identity, identity));
  }
  if (auto text = manifest_saved_already(directory, manifest)) {
    sealed.manifest_text = std::move(*text);
    tidy(directory, sealed, retention, ask);
  } else {
    publish_sealed(folder, directory, sealed, retention, ask);
  }
}

SealedStep seal_step(const SaveJob& job, std::span<const WrittenPayload> files) {
  SealedStep sealed;
  Index index;
  describe(job, files, sealed.manifest, index);
  sealed.index_bytes = index_bytes(sealed.manifest, index);
  sealed.manifest.index_bytes = sealed.index_bytes.size();
  sealed.manifest.index_crc32c = crc32c(std::as_bytes(std::span(sealed.index_bytes)));
  sealed.manifest_text = manifest_text(sealed.manifest);
  return sealed;
}

void publish_sealed(TemporaryStep& folder, const std::filesystem::path& directory,
                    const SealedStep& sealed, const Retention& retention, const AskLease& ask) {
  folder.commit(sealed.manifest_text, sealed.index_bytes, ask);
  tidy(directory, sealed, retention, ask);
}

void complete_step(const std::filesystem::path& directory, std::int64_t step,
                   std::string_view identity, std::string_view manifest_text, const AskLease& ask) {
  sync_directory(directory);
  if (later_steps(directory, step).empty()) {
    name_latest(directory, step, identity, manifest_text, ask);
  }
}

}  // namespace fourfold::io
