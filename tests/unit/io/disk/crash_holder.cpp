// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// crash_holder DIRECTORY: a job of two ranks that takes the lease of DIRECTORY, sweeps it, forgets
/// the node-local tier of an earlier start, and saves step 20 as the only one that is kept: all
/// that changes a directory of checkpoints. crash_holder DIRECTORY beside: a process without the
/// lease, whose start had it, that replaces `word` there and removes `asked`. crash_holder
/// DIRECTORY events: one with the lease that begins an event file and a log of lines, and goes on
/// in them. Ends with the exit code of what went wrong. fenced_lease_test runs it under the shim.
#include "fenced_job.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/event_file.hpp>
#include <fourfold/io/fence.hpp>
#include <fourfold/io/line_file.hpp>
#include <fourfold/io/local_tier.hpp>

#include <cstdio>
#include <string_view>

namespace {

using namespace fourfold;
using namespace fourfold::io_test;

void save(const std::filesystem::path& directory) {
  comm::run_ranks(2, [&](comm::Communicator& world) {
    io::CheckpointStore store(directory, fenced_options(1));
    store.take_lease(world);
    store.confirm_lease();
    store.sweep_leftovers(world);
    io::forget_local_tier(store, world);
    save_fenced(store, 20, world);
  });
}

void write_beside(const std::filesystem::path& directory) {
  const io::FencedPlace place(directory, io::LeaseOptions{}.name);
  if (io::living_holder_of(directory, io::LeaseHolder::this_process(), io::LeaseOptions{}.name)) {
    throw UserError(ExitCode::no_progress, "taken over");
  }
  io::AtomicFile file(directory / "word");
  file.write(std::string_view("of the first"));
  file.publish();
  if (io::remove_fenced(directory / "asked")) {
    throw UserError(ExitCode::cannot_write, "it stays");
  }
}

void write_events(const std::filesystem::path& directory) {
  const io::DirectoryLease lease(directory, io::LeaseHolder::this_process(), fenced_lease());
  lease.check();
  io::EventFile events(directory, 0, 1e9);
  io::LineFile lines(directory / "lines", "go away");
  for (int step = 1; step <= 3; ++step) {
    lines.append("of the first");
    events.add(step, 1e9, {});
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[2] : "";
  if (argc < 2 || argc > 3 || (argc == 3 && what != "beside" && what != "events")) {
    return 64;
  }
  try {
    (what == "beside" ? write_beside : what == "events" ? write_events : save)(argv[1]);
  } catch (const fourfold::Error& error) {
    std::fputs(error.what(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
