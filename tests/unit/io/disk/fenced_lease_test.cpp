// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A job that stands still (SIGSTOP) before any one of its calls that change the file system, and
/// goes on when another has taken over and saved: nothing of what the other has changes any more.
#include "captured_log.hpp"
#include "fenced_job.hpp"
#include "save/crash_job.hpp"
#include "save/stopping_job.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/event_file.hpp>
#include <fourfold/io/fence.hpp>
#include <fourfold/io/line_file.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>
#include <map>
#include <string>

using namespace fourfold;
using namespace fourfold::io_test;
namespace fs = std::filesystem;

namespace {

/// Steps 5 and 10, a damaged step 20 that has to make way, what a dead job and a node-local tier
/// left.
void fill(const fs::path& directory) {
  comm::run_ranks(2, [&](comm::Communicator& world) {
    io::CheckpointStore store(directory, fenced_options(0));
    for (const std::int64_t step : {5, 10, 20}) {
      save_fenced(store, step, world);
    }
  });
  fs::resize_file(directory / "step-000000020/index.h5", 100);
  fs::create_directories(directory / ".tmp-step-000000015-0123456789abcdef");
  std::ofstream(directory / ".fast-level")
      << "fourfold-fast-level 1 0123456789abcdef 1 1.000000001\n";
}

/// All but the lease of who has it now, and what was never finished, which nobody reads.
std::map<std::string, std::string> found_in(const fs::path& directory) {
  auto files = harness::files_below(directory);
  std::erase_if(files, [](const auto& file) {
    return file.first.starts_with(".lease") || io::name_of_temporary(file.first);
  });
  return files;
}

}  // namespace

TEST_CASE("who stood still at any call changes nothing of what another has saved since") {
  Attempts attempts;
  fill(attempts.original());
  std::map<int, int> codes;
  long at = 1;
  for (bool has_ended = false; !has_ended; ++at) {
    CAPTURE(at);
    const fs::path work = attempts.fresh();
    StoppingJob job({crash_program("holder"), work.string()}, work, at);
    if (!job.stands_still()) {
      has_ended = true;
      continue;
    }
    comm::run_ranks(2, [&](comm::Communicator& world) {
      const harness::CapturedLog log;
      io::CheckpointStore store(work, fenced_options(3));
      store.take_lease(world);
      store.confirm_lease();
      store.sweep_leftovers(world);
      save_fenced(store, 30, world);
      world.barrier();
      if (world.rank() == 0) {
        const auto before = found_in(work);
        const int code = job.go_on();
        ++codes[code];
        if (found_in(work) != before) {
          throw std::runtime_error("the directory has changed, job ended with " +
                                   std::to_string(code));
        }
        store.check_lease();
      }
    });
    const harness::CapturedLog log;
    comm::run_ranks(1, [&](comm::Communicator& world) {
      RankState state(small_model(), all_cuts()[0].cut, 0, 1, false);
      io::CheckpointStore store(work, fenced_options(3));
      const auto checkpoint = store.restore(state.wanted, world);
      if (!checkpoint || checkpoint->step() != 30 || state.wrong_elements(30) != 0) {
        throw std::runtime_error("step 30 is not whole");
      }
    });
    for (const auto& entry : fs::directory_iterator(work)) {  // both are gone, nothing is left
      CHECK_FALSE(entry.path().filename().string().starts_with(".lease"));
    }
  }
  CHECK(at > 60);
  CHECK(codes[73] + codes[93] > 40);  // it has learnt that it was taken over, or fails in a file
  for (const auto& [code, times] : codes) {
    CAPTURE(code, times);
    // 78: it had no lease yet; 0: it had saved and was at giving the lease back.
    CHECK((code == 73 || code == 93 || code == 78 || code == 0));
  }
}

TEST_CASE("another process of a start that was taken over replaces and removes nothing any more") {
  Attempts attempts;
  fs::create_directories(attempts.original());
  long stopped = 0;
  for (bool has_ended = false; !has_ended;) {
    CAPTURE(stopped);
    const fs::path work = attempts.fresh();
    std::ofstream(work / "asked") << "the first";
    StoppingJob job({crash_program("holder"), work.string(), "beside"}, work, stopped + 1);
    has_ended = !job.stands_still();
    if (has_ended) {
      continue;
    }
    ++stopped;
    const io::DirectoryLease lease(work, {.host = "node2", .pid = 78}, fenced_lease());
    std::ofstream(work / "word") << "of the second";
    std::ofstream(work / "asked") << "the second";
    const auto before = found_in(work);
    const int code = job.go_on();
    CHECK(found_in(work) == before);
    CHECK((code == 73 || code == 93 || code == 0));
  }
  CHECK(stopped > 8);
}

TEST_CASE("events and lines of a start that was taken over come nowhere") {
  Attempts attempts;
  fs::create_directories(attempts.original());
  long stopped = 0;
  std::map<int, int> codes;
  for (bool has_ended = false; !has_ended;) {
    CAPTURE(stopped);
    const fs::path work = attempts.fresh();
    StoppingJob job({crash_program("holder"), work.string(), "events"}, work, stopped + 1);
    has_ended = !job.stands_still();
    if (has_ended) {
      continue;
    }
    ++stopped;
    const harness::CapturedLog log;
    const io::DirectoryLease lease(work, {.host = "node2", .pid = 78}, fenced_lease());
    io::EventFile events(work, 2, 1e9);
    events.add(2, 1e9, {});
    io::LineFile lines(work / "lines", "go away");
    lines.append("of the second");
    const auto before = found_in(work);
    ++codes[job.go_on()];
    CHECK(found_in(work) == before);
    std::string last;
    for (const auto& [name, bytes] : before) {
      last = name.starts_with(io::event_file_prefix) ? name : last;
    }
    CHECK(events.path().filename() == last);  // readers take its START for the last one
  }
  CHECK(stopped > 15);
  CHECK(codes[73] + codes[93] >= 5);  // 78: it had no lease yet
}
