// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/directory_probe.hpp>
#include <fourfold/io/step_place.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace fourfold::io {
namespace {

/// Every rank writes its part there, and reads those of others: a folder of that name on a disk of
/// each node is not enough.
void require_one_directory(const std::filesystem::path& directory,
                           comm::Communicator& communicator) {
  if (communicator.size() == 1) {
    return;
  }
  constexpr std::chrono::seconds longest{10};  // that a client of NFS may believe what it knew
  std::optional<ProbeFile> probe;
  const std::string word =
      comm::broadcast_text(communicator, communicator.rank() == 0 ? ProbeFile::new_word() : "", 0);
  comm::run_on_root(communicator, [&] { probe.emplace(directory, word); });
  comm::collective_try(communicator, [&] {
    const auto end = std::chrono::steady_clock::now() + longest;
    while (!ProbeFile::is_seen(directory, word)) {
      if (std::chrono::steady_clock::now() > end) {
        throw UserError(
            ExitCode::config,
            format_message(
                "{}: what rank 0 writes there is not seen on this rank's node (a disk of each "
                "node, or a file system that is not mounted there); set checkpoint.dir, or log.dir "
                "which it follows, to a folder that all nodes share",
                directory.string()));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  });
}

}  // namespace

CheckpointStore::CheckpointStore(std::filesystem::path directory, StoreOptions options)
    : directory_(std::move(directory)), options_(std::move(options)) {}

CheckpointStore::~CheckpointStore() = default;

void CheckpointStore::check_writable(comm::Communicator& communicator) const {
  comm::run_on_root(communicator, [&] {
    refuse_step_as_directory(directory_);
    make_directories(directory_);
    refuse_foreign_latest(directory_);
    // Never published: gone at the end. The name is no other host's.
    AtomicFile probe(directory_ / (std::string(probe_prefix) + random_word()));
    probe.write(std::vector<std::byte>(4096));
    probe.sync();
  });
  require_one_directory(directory_, communicator);
}

void CheckpointStore::take_lease(comm::Communicator& communicator) {
  comm::run_on_root(communicator, [&] {
    refuse_step_as_directory(directory_);
    lease_ = std::make_unique<DirectoryLease>(
        directory_, LeaseHolder::this_process(),
        LeaseOptions{
            .beat = options_.lease_beat, .silence = 6 * options_.lease_beat, .provisional = true});
    const std::vector<std::int64_t> steps = list_steps(directory_);
    steps_at_first_ = {steps.begin(), steps.end()};
  });
}

void CheckpointStore::confirm_lease() {
  if (!lease_ || is_confirmed_) {
    return;
  }
  is_confirmed_ = true;
  lease_->confirm();
  lease_->check();
  // Until now an earlier holder that stood still could go on, and what restore() found is old.
  for (const std::int64_t step : list_steps(directory_)) {
    if (!steps_at_first_.contains(step)) {
      throw UserError(
          ExitCode::stopped_saved,
          format_message("{}: step {} has appeared while this start was being set up (an earlier "
                         "one that stood still has saved it); start again: it goes on from there",
                         directory_.string(), step));
    }
  }
}

void CheckpointStore::check_lease() const {
  if (lease_) {
    lease_->check();
  }
}

std::optional<Checkpoint> CheckpointStore::restore(
    std::span<const WantedBox> wanted, comm::Communicator& communicator,
    const std::function<void(const Checkpoint&)>& examine, std::span<const TensorLayout> layouts) {
  if (newest_step(directory_, communicator) < 0) {
    require_no_lost_steps(directory_, -1, communicator);
    return std::nullopt;
  }
  std::int64_t before = std::numeric_limits<std::int64_t>::max();
  while (auto checkpoint = find_newest_valid(directory_, communicator, before)) {
    if (examine) {
      examine(*checkpoint);
    }
    const LoadReport report = load(*checkpoint, wanted, communicator, options_.done_with,
                                   {layouts, options_.share_reads_from});
    if (report.intact()) {
      return checkpoint;
    }
    log::warning(format_message(
        "{}: the checkpoint of step {} is damaged, falling back to an older one:\n  {}",
        checkpoint->path().string(), checkpoint->step(), fmt::join(report.damage, "\n  ")));
    before = checkpoint->step();
    damaged_steps_.insert(before);
  }
  throw UserError(
      ExitCode::data_corrupt,
      format_message("{}: no checkpoint there is intact (each is named above with the reason); "
                     "restore one from a copy, or start anew in another folder",
                     directory_.string()));
}

void CheckpointStore::sweep_leftovers(comm::Communicator& communicator) const {
  comm::run_on_root(communicator, [&] {
    check_lease();  // who has it now writes what looks like left over
    warn_of_leftovers(remove_leftovers(directory_));
  });
}

}  // namespace fourfold::io
