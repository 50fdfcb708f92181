// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A checkpoint cut anew by a few processes is byte for byte what the ranks of the new cut would
/// have saved.
#include "captured_log.hpp"
#include "save/position_coded_state.hpp"
#include "save/save_attempt.hpp"
#include "scratch_folder.hpp"
#include "sweep.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/streamed_save.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>

using namespace fourfold;
using namespace fourfold::io_test;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

constexpr const char* step_name = "step-000000010";

std::vector<io::TensorLayout> layouts_of(const NamedCut& cut, int ranks) {
  return RankState(small_model(), cut.cut, 0, ranks, false).layouts;
}

struct Reshard {
  NamedCut cut;
  int ranks = 1;      ///< of the new mesh
  int processes = 1;  ///< that do it
  int files = 0;      ///< 0: one per rank
  std::int64_t part_bytes = 100;
};

/// Fails at its `fails_at`-th read, like a disk that goes away.
class FailingSource final : public io::TensorSource {
 public:
  FailingSource(const io::Checkpoint& checkpoint, int fails_at)
      : source_(checkpoint), fails_at_(fails_at) {}
  void read(const io::TensorId& id, const Box& box, TensorView target) override {
    if (++reads_ == fails_at_) {
      throw UserError(ExitCode::data_corrupt, "the disk went away");
    }
    source_.read(id, box, target);
  }
  int reads() const { return reads_; }

 private:
  io::CheckpointSource source_;
  int reads_ = 0;
  int fails_at_;
};

/// @return reads of all processes
int reshard(const fs::path& from, const fs::path& to, const Reshard& reshard, int fails_at = 0,
            const std::function<void(io::StreamedSave&)>& change = {}) {
  std::atomic<int> reads{0};
  comm::run_ranks(reshard.processes, [&](comm::Communicator& world) {
    const io::Checkpoint checkpoint = io::find_checkpoint(from, world);
    const std::vector<io::TensorLayout> layouts = layouts_of(reshard.cut, reshard.ranks);
    FailingSource source(checkpoint, fails_at);
    io::StreamedSave save{.step = checkpoint.step(),
                          .mesh = {1, reshard.ranks, 1, 1},
                          .scalars = checkpoint.scalars(),
                          .tensors = layouts,
                          .plan = {.smallest_part_bytes = 64},
                          .identity = checkpoint.identity(),
                          .part_bytes = reshard.part_bytes};
    if (reshard.files > 0) {
      save.plan.file_of_rank = io::shared_files(reshard.ranks, reshard.files);
    }
    if (change) {
      change(save);
    }
    io::save_streamed(to, save, source, world);
    reads += source.reads();
  });
  return reads;
}

void save(const fs::path& directory, const NamedCut& cut, int ranks, int files = 0) {
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    io::PlanOptions plan{.smallest_part_bytes = 64};
    if (files > 0) {
      plan.file_of_rank = io::shared_files(ranks, files);
    }
    save_as(directory, cut, ranks, 10, world, {.keep_last = 0, .plan = plan});
  });
}

/// Names of files that are not the same in both steps.
std::vector<std::string> differing_files(const fs::path& a, const fs::path& b) {
  std::vector<std::string> differing;
  std::vector<std::string> all = names(a / step_name);
  const std::vector<std::string> others = names(b / step_name);
  all.insert(all.end(), others.begin(), others.end());
  for (const std::string& name : all) {
    if (!fs::exists(a / step_name / name) || !fs::exists(b / step_name / name) ||
        read_bytes(a / step_name / name) != read_bytes(b / step_name / name)) {
      differing.push_back(name);
    }
  }
  return differing;
}

}  // namespace

TEST_CASE("cutting anew writes the bytes that the ranks of the new cut would save") {
  const std::vector<NamedCut> cuts = all_cuts();
  harness::Sweep sweep(5);
  for (const NamedCut& from : cuts) {
    const ScratchFolder scratch;
    save(scratch / "from", from, 3);
    for (std::size_t i = 0; i < cuts.size(); ++i) {
      const int ranks = i % 2 == 0 ? 4 : 5;
      const int files = i % 3 == 0 ? 2 : 0;
      save(scratch / "direct", cuts[i], ranks, files);
      for (const int processes : {1, 3}) {
        for (const std::int64_t part_bytes : {7, 100, 1 << 20}) {
          if (!sweep.takes_next()) {
            continue;
          }
          CAPTURE(from.name, cuts[i].name, ranks, files, processes, part_bytes);
          reshard(scratch / "from", scratch / "reshard",
                  {cuts[i], ranks, processes, files, part_bytes});
          REQUIRE(differing_files(scratch / "direct", scratch / "reshard").empty());
          REQUIRE(names(scratch / "reshard") == std::vector<std::string>{"LATEST", step_name});
          fs::remove_all(scratch / "reshard");
        }
      }
      fs::remove_all(scratch / "direct");
    }
  }
}

TEST_CASE(
    "what others have left is removed under the lease, and only when nothing is gone on with") {
  const ScratchFolder scratch;
  save(scratch / "from", all_cuts()[1], 3);
  const fs::path left = scratch / "to" / ".tmp-step-000000010-0123456789abcdef";
  fs::create_directories(left);
  const auto anew = [](io::StreamedSave& save) { save.goes_on = false; };
  const auto cut_anew = [&] {
    reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, 2}, 0, anew);
  };
  {
    const io::DirectoryLease other(scratch / "to", {.host = "node1", .pid = 7, .job = ""},
                                   {.beat = 50ms});
    const harness::CapturedLog log;
    CHECK_THROWS_MATCHES(cut_anew(), UserError, MessageMatches(ContainsSubstring("node1")));
    CHECK(fs::exists(left));
  }
  reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, 1});
  CHECK(fs::exists(left));
  cut_anew();
  CHECK(!fs::exists(left));
}

TEST_CASE("nothing is written into a checkpoint") {
  const ScratchFolder scratch;
  save(scratch / "from", all_cuts()[1], 3);
  const fs::path step = scratch / "from" / step_name;
  const std::vector<std::string> before = names(step);
  CHECK_THROWS_MATCHES(reshard(scratch / "from", step, {all_cuts()[2], 4, 2}), UserError,
                       MessageMatches(ContainsSubstring("not a folder of checkpoints")));
  comm::run_ranks(1, [&](comm::Communicator& self) {
    CHECK_THROWS_AS(io::CheckpointStore(step).check_writable(self), UserError);
  });
  CHECK(names(step) == before);
}

TEST_CASE("there and back again: the same bytes") {
  const ScratchFolder scratch;
  save(scratch / "a", all_cuts()[5], 4);
  reshard(scratch / "a", scratch / "b", {all_cuts()[1], 7, 2});
  reshard(scratch / "b", scratch / "back", {all_cuts()[5], 4, 1});
  CHECK(differing_files(scratch / "a", scratch / "back").empty());
}

TEST_CASE("an attempt that failed is gone on with, by as many processes as there are now") {
  const ScratchFolder scratch;
  save(scratch / "from", all_cuts()[1], 3);
  save(scratch / "direct", all_cuts()[2], 4);
  const int all_reads = reshard(scratch / "from", scratch / "whole", {all_cuts()[2], 4, 1});
  REQUIRE(all_reads > 30);
  int fewest = all_reads;
  for (int fails_at = 1; fails_at <= all_reads; fails_at += 5) {
    for (const int processes : {1, 2}) {
      CAPTURE(fails_at, processes);
      CHECK_THROWS_MATCHES(
          reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, 1}, fails_at), UserError,
          MessageMatches(ContainsSubstring("the same command goes on from there")));
      REQUIRE(!fs::exists(scratch / "to" / step_name));
      const int reads = reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, processes});
      REQUIRE(reads <= all_reads);
      fewest = std::min(fewest, reads);
      REQUIRE(differing_files(scratch / "direct", scratch / "to").empty());
      REQUIRE(names(scratch / "to") == std::vector<std::string>{"LATEST", step_name});
      fs::remove_all(scratch / "to");
    }
  }
  CHECK(fewest < all_reads / 2);
}

TEST_CASE("an attempt that would not be gone on with leaves nothing, and says nothing of it") {
  const ScratchFolder scratch;
  save(scratch / "from", all_cuts()[1], 3);
  const int processes = GENERATE(1, 2);
  CHECK_THROWS_MATCHES(reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, processes}, 3,
                               [](io::StreamedSave& save) { save.goes_on = false; }),
                       UserError,
                       MessageMatches(ContainsSubstring("the disk went away") &&
                                      !ContainsSubstring("goes on from there")));
  CHECK(fs::is_empty(scratch / "to"));
}

TEST_CASE("a journal that is torn or of another folder is not believed") {
  const ScratchFolder scratch;
  save(scratch / "from", all_cuts()[1], 3);
  save(scratch / "direct", all_cuts()[2], 4);
  CHECK_THROWS(reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, 1}, 40));
  fs::path journal;
  for (const auto& entry : fs::recursive_directory_iterator(scratch / "to")) {
    if (entry.path().filename() == "journal-0") {
      journal = entry.path();
    }
  }
  std::string bytes = read_bytes(journal);
  REQUIRE(bytes.size() >= 80);
  bytes[8] ^= 1;                   // a digest
  bytes.resize(bytes.size() - 3);  // the last record
  std::ofstream(journal, std::ios::binary) << bytes;
  reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, 1});
  CHECK(differing_files(scratch / "direct", scratch / "to").empty());
}

TEST_CASE("what is there already is left, and never overwritten") {
  const ScratchFolder scratch;
  save(scratch / "from", all_cuts()[1], 3);
  const Reshard target{all_cuts()[2], 4, 1};
  reshard(scratch / "from", scratch / "to", target);
  CHECK(reshard(scratch / "from", scratch / "to", target) == 0);
  CHECK_THROWS_MATCHES(reshard(scratch / "from", scratch / "to", {all_cuts()[1], 4, 1}), UserError,
                       MessageMatches(ContainsSubstring("cut otherwise")));
  CHECK_THROWS_MATCHES(
      reshard(scratch / "from", scratch / "to", target, 0,
              [](io::StreamedSave& save) { save.identity = std::string(32, '0'); }),
      UserError, MessageMatches(ContainsSubstring("exists already")));
}

TEST_CASE("what is not the state it was to be is not published") {
  const ScratchFolder scratch;
  save(scratch / "from", all_cuts()[1], 3);
  CHECK_THROWS_MATCHES(
      reshard(scratch / "from", scratch / "to", {all_cuts()[2], 4, 2}, 0,
              [](io::StreamedSave& save) { save.identity = std::string(32, '0'); }),
      UserError, MessageMatches(ContainsSubstring("is not the state that it was to be")));
  CHECK(!fs::exists(scratch / "to" / step_name));
}
