// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <filesystem>
#include <set>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using harness::read_bytes;
namespace fs = std::filesystem;

namespace {

void save(const fs::path& directory, const NamedCut& cut, int ranks,
          std::vector<int> file_of_rank) {
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    save_as(directory, cut, ranks, 10, world,
            {.keep_last = 0, .plan = {.smallest_part_bytes = 64, .file_of_rank = file_of_rank}});
  });
}

std::set<std::string> names_in(const fs::path& step) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(step)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

}  // namespace

TEST_CASE("ranks are dealt to files in their order, or by node") {
  CHECK(io::shared_files(5, 2) == std::vector<int>{0, 0, 0, 1, 1});
  CHECK(io::shared_files(3, 1) == std::vector<int>{0, 0, 0});
  CHECK(io::shared_files(2, 7) == std::vector<int>{0, 1});
  const std::vector<std::string> hosts{"n7", "n7", "n2", "n7", "n2"};
  CHECK(io::files_by_node(hosts) == std::vector<int>{0, 0, 1, 0, 1});
}

TEST_CASE("files that several ranks write hold what files of their own would") {
  for (const NamedCut& cut : all_cuts()) {
    const harness::ScratchFolder scratch;
    save(scratch / "own", cut, 5, {});
    for (const std::vector<int>& sharing :
         {io::shared_files(5, 1), io::shared_files(5, 2), std::vector<int>{0, 1, 0, 2, 1}}) {
      CAPTURE(cut.name, sharing);
      fs::remove_all(scratch / "shared");
      fs::remove_all(scratch / "again");
      save(scratch / "shared", cut, 5, sharing);
      save(scratch / "again", cut, 5, sharing);
      const fs::path step = scratch / "shared" / "step-000000010";
      for (const std::string& name : names_in(step)) {  // whoever came first
        REQUIRE(read_bytes(step / name) == read_bytes(scratch / "again" / "step-000000010" / name));
      }
      std::atomic<std::int64_t> wrong{0};
      comm::run_ranks(3, [&](comm::Communicator& world) {
        RankState state(small_model(), all_cuts()[2].cut, world.rank(), 3, false);
        const auto checkpoint =
            io::CheckpointStore(scratch / "shared").restore(state.wanted, world);
        const io::Checkpoint own = io::find_checkpoint(scratch / "own", world);
        wrong += checkpoint ? state.wrong_elements() : 1;
        wrong += checkpoint && checkpoint->identity() == own.identity() ? 0 : 1;
        wrong += io::verify(*checkpoint, world).empty() ? 0 : 1;
      });
      REQUIRE(wrong == 0);
    }
  }
}

TEST_CASE("a file that no rank writes into is not there, and numbers stay") {
  const harness::ScratchFolder scratch;
  const NamedCut last_only{
      "last", [](const Shape& shape, std::size_t, int ranks) {
        return std::vector<io::HeldBox>{{Box::whole(shape), io::RankSet::single(ranks - 1)}};
      }};
  save(scratch / "c", last_only, 4, {0, 1, 2, 2});
  CHECK(names_in(scratch / "c" / "step-000000010") ==
        std::set<std::string>{"MANIFEST.json", "index.h5", "shard-00002-of-00003.h5"});
}

TEST_CASE("ranks that disagree on who shares a file save nothing") {
  const harness::ScratchFolder scratch;
  const auto attempt = [&] {
    comm::run_ranks(2, [&](comm::Communicator& world) {
      save_as(scratch / "c", all_cuts()[0], 2, 10, world,
              {.keep_last = 0,
               .plan = {.smallest_part_bytes = 64,
                        .file_of_rank = io::shared_files(2, 1 + world.rank())}});
    });
  };
  CHECK_THROWS_MATCHES(attempt(), Error,
                       MessageMatches(ContainsSubstring("files of the ranks: 0,1")));
  CHECK(!fs::exists(scratch / "c" / "step-000000010"));
}
