// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Saves that cannot succeed: all ranks throw alike, nothing is left, older steps stay. As root no
/// permission stops a write, so limits on file sizes and files in the place of folders do.
#include "captured_log.hpp"
#include "position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/resource.h>

#include <csignal>
#include <fstream>
#include <mutex>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

struct Outcome {
  std::vector<int> codes;  ///< 0: saved
  std::string message;
};

/// Saves as `ranks` ranks; `tamper` may change a rank's state before.
Outcome try_save(const fs::path& directory, int ranks, std::int64_t step,
                 const std::function<void(int rank, RankState&)>& tamper = {}, int keep_last = 0) {
  Outcome outcome;
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[0].cut, world.rank(), ranks, true);
    if (tamper) {
      tamper(world.rank(), state);
    }
    io::CheckpointStore store(directory,
                              {.keep_last = keep_last, .plan = {.smallest_part_bytes = 64}});
    int code = 0;
    std::string message;
    try {
      store.save({.step = step,
                  .mesh = {1, ranks, 1, 1},
                  .scalars = some_scalars(step),
                  .tensors = state.layouts,
                  .pieces = state.pieces},
                 world);
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
      message = error.what();
    }
    const std::scoped_lock lock(mutex);
    outcome.codes.push_back(code);
    outcome.message = message;
  });
  return outcome;
}

std::vector<std::string> names(const fs::path& directory) {
  std::vector<std::string> result;
  for (const auto& entry : fs::directory_iterator(directory)) {
    result.push_back(entry.path().filename().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

/// Writes beyond this many bytes of a file fail with EFBIG while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE("a folder that cannot be made is exit code 73 on all ranks, with path and reason") {
  const ScratchFolder scratch;
  scratch.write("file", "");
  const Outcome outcome = try_save(scratch / "file" / "checkpoints", 3, 10);
  CHECK(outcome.codes == std::vector{73, 73, 73});
  CHECK_THAT(outcome.message, ContainsSubstring((scratch / "file").string()));
  CHECK_THAT(outcome.message, ContainsSubstring("Not a directory"));
}

TEST_CASE("a write that fails on some ranks fails the save on all, and leaves the older step") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 3, 10).codes == std::vector{0, 0, 0});
  // From HDF5's own metadata over payloads to the index and the manifest.
  for (const rlim_t limit : {100, 1000, 3000, 6000, 9000, 12000}) {
    CAPTURE(limit);
    Outcome outcome;
    {
      const FileSizeLimit limited(limit);
      outcome = try_save(directory, 3, 20);
    }
    CHECK(outcome.codes == std::vector{73, 73, 73});
    CHECK_THAT(outcome.message, ContainsSubstring("cannot be written"));
    CHECK_THAT(outcome.message, ContainsSubstring("checkpoints that exist are untouched"));
    CHECK_THAT(outcome.message, ContainsSubstring("free there"));
    CHECK(names(directory) == std::vector<std::string>{"LATEST", "step-000000010"});
  }
  CHECK(try_save(directory, 3, 20).codes == std::vector{0, 0, 0});
}

TEST_CASE("a replica that has diverged is named with its tensor and rank, and nothing is saved") {
  const ScratchFolder scratch;
  const Outcome outcome = try_save(scratch / "c", 4, 10, [](int rank, RankState& state) {
    if (rank == 2) {
      static_cast<std::byte*>(state.wanted[3].data.data())[11] ^= std::byte{1};
    }
  });
  CHECK(outcome.codes == std::vector{65, 65, 65, 65});
  CHECK_THAT(outcome.message, ContainsSubstring("layers.0.experts/master"));
  CHECK_THAT(outcome.message, ContainsSubstring("differs from the majority on rank 2"));
  CHECK_FALSE(fs::exists(scratch / "c"));
  const Outcome tie = try_save(scratch / "c", 2, 10, [](int rank, RankState& state) {
    if (rank == 1) {
      static_cast<std::byte*>(state.wanted[0].data.data())[0] ^= std::byte{1};
    }
  });
  CHECK_THAT(tie.message, ContainsSubstring("no two agree among ranks 0, 1"));
}

TEST_CASE("ranks that disagree about the plan do not save") {
  const ScratchFolder scratch;
  const Outcome outcome = try_save(scratch / "c", 2, 10, [](int rank, RankState& state) {
    if (rank == 1) {
      state.layouts.pop_back();
    }
  });
  CHECK(outcome.codes == std::vector{70, 70});
  CHECK_THAT(outcome.message, ContainsSubstring("ranks disagree"));
}

TEST_CASE("a piece that one rank did not pass fails the save on all") {
  const ScratchFolder scratch;
  const Outcome outcome = try_save(scratch / "c", 3, 10, [](int rank, RankState& state) {
    if (rank == 1) {
      state.pieces.erase(state.pieces.begin() + 1);
    }
  });
  CHECK(outcome.codes == std::vector{70, 70, 70});
  CHECK_THAT(outcome.message, ContainsSubstring("rank 1: checkpoint: no piece"));
  CHECK_THAT(outcome.message, ContainsSubstring("layers.0.norm.weight/master"));
}

TEST_CASE("a step is never overwritten: the same state counts as saved, another is refused") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  const std::string manifest = harness::read_bytes(directory / "step-000000010/MANIFEST.json");
  CHECK(try_save(directory, 2, 10).codes == std::vector{0, 0});
  const Outcome other = try_save(directory, 2, 10, [](int, RankState& state) {
    static_cast<std::byte*>(state.wanted[0].data.data())[0] ^= std::byte{1};
  });
  CHECK(other.codes == std::vector{73, 73});
  CHECK_THAT(other.message, ContainsSubstring("exists already with other contents"));
  CHECK(harness::read_bytes(directory / "step-000000010/MANIFEST.json") == manifest);
  CHECK(names(directory) == std::vector<std::string>{"LATEST", "step-000000010"});
}

TEST_CASE("a damaged step makes room for the same step saved anew") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  fs::resize_file(directory / "step-000000010/index.h5", 100);
  const harness::CapturedLog log;
  CHECK(try_save(directory, 2, 10).codes == std::vector{0, 0});
  CHECK_THAT(log.text(), ContainsSubstring("set aside as damaged-step-000000010-"));
  const auto left = names(directory);
  REQUIRE(left.size() == 3);
  CHECK(left[1].starts_with("damaged-step-000000010-"));
  CHECK(left[2] == "step-000000010");
}

TEST_CASE("only the newest steps are kept, and leftovers are swept") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  for (std::int64_t step = 10; step <= 50; step += 10) {
    REQUIRE(try_save(directory, 2, step, {}, 2).codes == std::vector{0, 0});
  }
  CHECK(names(directory) == std::vector<std::string>{"LATEST", "step-000000040", "step-000000050"});
  CHECK(harness::read_bytes(directory / "LATEST").starts_with("50 "));
  fs::create_directories(directory / ".tmp-step-000000060-abc");
  std::ofstream(directory / ".tmp-step-000000060-abc" / "shard-00000-of-00002.h5") << "half";
  fs::create_directories(directory / ".trash-def" / "deep");
  std::ofstream(directory / "notes.txt") << "the user's";
  comm::run_ranks(
      2, [&](comm::Communicator& world) { io::CheckpointStore(directory).sweep_leftovers(world); });
  CHECK(names(directory) ==
        std::vector<std::string>{"LATEST", "notes.txt", "step-000000040", "step-000000050"});
}
