// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Saves that cannot succeed: all ranks throw alike, nothing is left, older steps stay. As root no
/// permission stops a write, so limits on file sizes and files in the place of folders do.
#include "damaging_communicator.hpp"
#include "file_size_limit.hpp"
#include "save_attempt.hpp"
#include "scratch_folder.hpp"

#include <fourfold/io/checkpoint_find.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

/// The errors of `ranks` ranks that are threads, in no order; "" of a rank without.
std::vector<std::string> errors_of(int ranks,
                                   const std::function<void(comm::Communicator&)>& body) {
  std::vector<std::string> errors;
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    std::string text;
    try {
      body(world);
    } catch (const Error& error) {
      const bool is_users = dynamic_cast<const UserError*>(&error) != nullptr;
      text = fmt::format("{} {} {}", is_users ? "user" : "system", static_cast<int>(error.code()),
                         error.what());
    }
    const std::scoped_lock lock(mutex);
    errors.push_back(text);
  });
  return errors;
}

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
      const harness::FileSizeLimit limited(limit);
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

TEST_CASE("ranks that disagree do not save, and the first difference is told with its ranks") {
  const ScratchFolder scratch;
  const auto outcome_of = [&](const std::function<void(int, RankState&)>& tamper) {
    const Outcome outcome = try_save(scratch / "c", 4, 10, tamper);
    CHECK(outcome.codes == std::vector{70, 70, 70, 70});
    CHECK_THAT(outcome.message, ContainsSubstring("ranks disagree"));
    return outcome.message;
  };
  std::string message = outcome_of([](int rank, RankState& state) {
    if (rank == 1) {
      state.layouts.pop_back();
    }
  });
  CHECK_THAT(message, ContainsSubstring("\n  rank 1: nothing more\n  ranks 0, 2, 3: tensor "
                                        "counts/momentum i64 [1, 6] in 1 boxes"));
  message = outcome_of([](int rank, RankState& state) {
    if (rank >= 2) {
      state.layouts[3].dtype = DType::i32;
      state.layouts.pop_back();
    }
  });
  CHECK_THAT(message, ContainsSubstring("\n  ranks 0, 1: tensor layers.0.experts/master f32 ") &&
                          ContainsSubstring("\n  ranks 2, 3: tensor layers.0.experts/master i32 "));
  message = outcome_of([](int rank, RankState& state) {
    if (rank == 0) {
      state.layouts[4].boxes[0].holders = io::RankSet::single(0);
    }
  });
  CHECK_THAT(message, ContainsSubstring("\n  rank 0: tensor layers.0.empty/master f32 [0, 4]"));
  CHECK_FALSE(fs::exists(scratch / "c"));
}

TEST_CASE("ranks that differ in step, run file or folder are told so") {
  const ScratchFolder scratch;
  const auto errors = [&](const std::function<void(int, io::SaveRequest&, fs::path&)>& tamper) {
    const auto all = errors_of(3, [&](comm::Communicator& world) {
      const RankState state(small_model(), all_cuts()[0].cut, world.rank(), 3, true);
      io::SaveRequest request{.step = 10,
                              .mesh = {1, 3, 1, 1},
                              .scalars = some_scalars(10),
                              .tensors = state.layouts,
                              .pieces = state.pieces};
      fs::path directory = scratch / "c";
      tamper(world.rank(), request, directory);
      io::CheckpointStore(directory).save(request, world);
    });
    REQUIRE(all.size() == 3);
    return all.front();
  };
  CHECK_THAT(errors([](int rank, io::SaveRequest& request, fs::path&) {
               request.step += rank == 2 ? 1 : 0;
             }),
             ContainsSubstring("\n  rank 2: step 11\n  ranks 0, 1: step 10"));
  CHECK_THAT(errors([](int rank, io::SaveRequest& request, fs::path&) {
               request.scalars.integers["consumed_samples"] += rank;
             }),
             ContainsSubstring("\n  rank 1: scalar consumed_samples = 5121\n"));
  CHECK_THAT(errors([](int rank, io::SaveRequest& request, fs::path&) {
               request.scalars.reals["loss_scale"] = rank == 0 ? 1.0 : 2.0;
             }),
             ContainsSubstring("\n  rank 0: scalar loss_scale = 1 (bits 3ff0000000000000)\n"));
  CHECK_THAT(errors([](int rank, io::SaveRequest& request, fs::path&) {
               request.scalars.texts["config.toml"] += rank == 1 ? "\n" : "";
             }),
             ContainsSubstring("\n  rank 1: text config.toml of 25 bytes"));
  CHECK_THAT(errors([](int rank, io::SaveRequest&, fs::path& directory) {
               directory += rank == 1 ? "2" : "";
             }),
             ContainsSubstring("\n  rank 1: directory "));
  CHECK_THAT(errors([](int rank, io::SaveRequest& request, fs::path&) {
               request.mesh.dp += rank == 1 ? 1 : 0;
             }),
             ContainsSubstring("\n  rank 1: mesh "));
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

TEST_CASE("a rank that cannot make of a checkpoint what rank 0 made fails all") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  using Open = std::function<void(comm::Communicator&)>;
  const Open opens[] = {
      [&](comm::Communicator& world) { io::open_checkpoint(directory / "step-000000010", world); },
      [&](comm::Communicator& world) { io::find_newest_valid(directory, world); },
      // Saving the step again reads what is there first.
      [&](comm::Communicator& world) { save_as(directory, all_cuts()[0], 3, 10, world); }};
  for (const Open& open : opens) {
    const auto errors = errors_of(3, [&](comm::Communicator& world) {
      DamagingCommunicator damaging(world);
      open(world.rank() == 1 ? damaging : world);
    });
    for (const std::string& error : errors) {
      CHECK(error.starts_with("system 85 "));
      CHECK_THAT(error, ContainsSubstring("rank 1: ") && ContainsSubstring("this rank cannot"));
    }
  }
}

TEST_CASE("a directory that is another one on some nodes is refused at the start") {
  const ScratchFolder scratch;
  const auto errors = errors_of(3, [&](comm::Communicator& world) {
    const fs::path place = world.rank() == 2 ? scratch / "own" : scratch / "shared";
    fs::create_directories(place);
    io::CheckpointStore(place).check_writable(world);
  });
  for (const std::string& error : errors) {
    CHECK(error.starts_with("user 78 "));
    CHECK_THAT(error, ContainsSubstring("rank 2: " + (scratch / "own").string() + ": what rank 0"));
  }
  CHECK(names(scratch / "own").empty());
  CHECK(names(scratch / "shared").empty());
}

TEST_CASE("whether a save could begin is tried without leaving a trace") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "deep" / "c";
  const auto check = [](const fs::path& place) {
    return errors_of(
        3, [&](comm::Communicator& world) { io::CheckpointStore(place).check_writable(world); });
  };
  for (int time = 0; time < 2; ++time) {
    CHECK(check(directory) == std::vector<std::string>(3));
    CHECK(names(directory).empty());
  }
  {
    const harness::FileSizeLimit limited(1000);
    for (const std::string& error : check(directory)) {
      CHECK(error.starts_with("user 73 "));
      CHECK_THAT(error, ContainsSubstring(directory.string()) &&
                            ContainsSubstring("File too large") && ContainsSubstring("ulimit -f"));
    }
  }
  CHECK(names(directory).empty());
  scratch.write("file", "");
  for (const std::string& error : check(scratch / "file" / "c")) {
    CHECK(error.starts_with("user 73 "));
    CHECK_THAT(error, ContainsSubstring((scratch / "file").string()));
  }
}

TEST_CASE("a full disk is told as a user's error, with rank and path and no place in the sources") {
  const ScratchFolder scratch;
  std::vector<std::string> errors;
  {
    const harness::FileSizeLimit limited(3000);
    errors = errors_of(
        3, [&](comm::Communicator& world) { save_as(scratch / "c", all_cuts()[0], 3, 10, world); });
  }
  for (const std::string& error : errors) {
    CHECK(error.starts_with("user 73 rank "));
    CHECK(error.find(".cpp") == std::string::npos);
  }
}

TEST_CASE("a folder that cannot be read does not pass for one without checkpoints") {
  const ScratchFolder folder;
  fs::create_symlink("loop", folder / "loop");
  CHECK_THROWS_AS(io::list_steps(folder / "loop"), UserError);
  CHECK(io::list_steps(folder / "absent").empty());
}

TEST_CASE("rank 0 alone looks whether there are checkpoints, and all ranks fail with it") {
  const ScratchFolder folder;
  fs::create_symlink("loop", folder / "loop");
  std::mutex mutex;
  const auto errors_by = [&](const fs::path& seen_by_0, const fs::path& seen_by_others) {
    return errors_of(3, [&](comm::Communicator& world) {
      io::CheckpointStore store(world.rank() == 0 ? seen_by_0 : seen_by_others);
      const auto found = store.restore({}, world);
      const std::scoped_lock lock(mutex);
      CHECK_FALSE(found.has_value());
    });
  };
  CHECK(errors_by(folder / "absent", folder / "loop") == std::vector<std::string>(3));
  for (const std::string& error : errors_by(folder / "loop", folder / "absent")) {
    CHECK_THAT(error, ContainsSubstring("user 78 rank 0") && ContainsSubstring("cannot be read"));
  }
}
