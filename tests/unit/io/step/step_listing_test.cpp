// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What counts as a step, and what is said of entries that look like one and are none.
#include "captured_log.hpp"
#include "save/save_attempt.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/index_repair.hpp>
#include <fourfold/io/retention.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using harness::ScratchFolder;
namespace fs = std::filesystem;
using Steps = std::vector<std::int64_t>;

namespace {

/// Steps 10 and 20 in `c`; step 20 was moved elsewhere, and a link leads there.
class MovedStep {
 public:
  MovedStep() {
    for (const std::int64_t step : {10, 20}) {
      REQUIRE(try_save(directory(), 2, step).codes == std::vector{0, 0});
    }
    fs::create_directories(scratch_ / "elsewhere");
    fs::rename(link(), target());
    fs::create_directory_symlink(target(), link());
  }
  fs::path directory() const { return scratch_ / "c"; }
  fs::path link() const { return directory() / "step-000000020"; }
  fs::path target() const { return scratch_ / "elsewhere" / "old"; }

 private:
  ScratchFolder scratch_;
};

struct Restored {
  std::int64_t step = -1;
  std::int64_t wrong = 0;
  std::string log;
};

Restored restore(const fs::path& directory) {
  const harness::CapturedLog log;
  Restored restored;
  comm::run_ranks(1, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[0].cut, 0, 1, false);
    const auto checkpoint = io::CheckpointStore(directory).restore(state.wanted, world);
    restored.step = checkpoint ? checkpoint->step() : -1;
    restored.wrong = checkpoint ? state.wrong_elements() : 0;
  });
  restored.log = log.text();
  return restored;
}

/// What somebody may have put where a step was.
using Put = std::function<void(const fs::path& entry)>;
const std::vector<std::pair<Put, const char*>> no_steps = {
    {[](const fs::path& entry) { std::ofstream(entry) << "a file"; }, "is a file, not a folder"},
    {[](const fs::path& entry) { fs::create_symlink("/nowhere/step", entry); },
     "is a link to /nowhere/step, which cannot be reached"},
    {[](const fs::path& entry) {
       std::ofstream(entry.parent_path() / "notes.txt") << "the user's";
       fs::create_symlink("notes.txt", entry);
     },
     "is a link to notes.txt, which is a file, not a folder"},
    {[](const fs::path& entry) { fs::create_symlink(entry.filename(), entry); },
     "cannot be reached"},
    {[](const fs::path& entry) { REQUIRE(::mkfifo(entry.c_str(), 0600) == 0); }, "is no folder"},
};

}  // namespace

TEST_CASE("a step that was moved and linked is one like any other") {
  const MovedStep moved;
  CHECK(io::list_steps(moved.directory()) == Steps{10, 20});
  CHECK(io::passed_over_in(moved.directory()).empty());
  CHECK(io::link_of_step(moved.directory(), 20) == moved.target().string());
  CHECK_FALSE(io::link_of_step(moved.directory(), 10));
  const Restored restored = restore(moved.directory());
  CHECK(restored.step == 20);
  CHECK(restored.wrong == 0);
  CHECK(restored.log.empty());
  // Saved again it is there already, as the same state.
  CHECK(try_save(moved.directory(), 2, 20).codes == std::vector{0, 0});
  CHECK(fs::is_symlink(moved.link()));
}

TEST_CASE("of a linked step retention removes the link, and keeps what it leads to") {
  const MovedStep moved;
  const auto before = harness::files_below(moved.target());
  REQUIRE(try_save(moved.directory(), 2, 30, {}, 1).codes == std::vector{0, 0});
  CHECK(io::list_steps(moved.directory()) == Steps{30});
  CHECK(names(moved.directory()) == std::vector<std::string>{"LATEST", "step-000000030"});
  CHECK(harness::files_below(moved.target()) == before);
}

TEST_CASE("a linked step that is damaged is set aside as a link") {
  const MovedStep moved;
  fs::resize_file(moved.target() / "index.h5", 100);
  const harness::CapturedLog log;
  REQUIRE(try_save(moved.directory(), 2, 20).codes == std::vector{0, 0});
  CHECK_THAT(log.text(), ContainsSubstring("set aside as damaged-step-000000020-"));
  CHECK_FALSE(fs::is_symlink(moved.link()));
  CHECK(fs::file_size(moved.target() / "index.h5") == 100);
  CHECK(restore(moved.directory()).step == 20);
}

TEST_CASE("the index of a linked step is repaired where the step is, by its LATEST") {
  const MovedStep moved;
  const auto before = harness::files_below(moved.target());
  const bool both = GENERATE(false, true);
  fs::remove(moved.target() / "index.h5");
  if (both) {
    fs::remove(moved.target() / "MANIFEST.json");
  }
  const io::RepairReport report = io::repair_index(moved.link(), {});
  CHECK(report.proof == (both ? io::RepairProof::latest : io::RepairProof::manifest));
  CHECK(harness::files_below(moved.target()) == before);
  CHECK(names(moved.target().parent_path()) == std::vector<std::string>{"old"});
}

TEST_CASE("what has a step's name and is none is named, and an older step is taken") {
  for (const auto& [put, why] : no_steps) {
    CAPTURE(why);
    const ScratchFolder scratch;
    REQUIRE(try_save(scratch / "c", 2, 10).codes == std::vector{0, 0});
    put(scratch / "c" / "step-000000020");
    const auto others = io::passed_over_in(scratch / "c");
    REQUIRE(others.size() == 1);
    CHECK(others[0].step == 20);
    CHECK_THAT(others[0].why, ContainsSubstring(why));
    const Restored restored = restore(scratch / "c");
    CHECK(restored.step == 10);
    CHECK_THAT(restored.log,
               ContainsSubstring("step-000000020: is passed over: it ") && ContainsSubstring(why));
    // The run comes by that step again: the entry makes way.
    const harness::CapturedLog log;
    REQUIRE(try_save(scratch / "c", 2, 20).codes == std::vector{0, 0});
    CHECK_THAT(log.text(), ContainsSubstring("set aside as damaged-step-000000020-"));
    CHECK(restore(scratch / "c").step == 20);
  }
}

TEST_CASE("no run begins anew where an entry has the name of a step that is gone") {
  for (const auto& [put, why] : no_steps) {
    CAPTURE(why);
    const ScratchFolder scratch;
    fs::create_directories(scratch / "c");
    put(scratch / "c" / "step-000000020");
    const harness::CapturedLog log;
    comm::run_ranks(2, [&](comm::Communicator& world) {
      std::string said;
      try {
        io::require_no_lost_steps(scratch / "c", 10, world);
      } catch (const UserError& error) {
        said = error.code() == ExitCode::data_corrupt ? error.what() : "";
      }
      if (said.find(why) == std::string::npos ||
          said.find("begin again at step 10") == std::string::npos) {
        throw std::runtime_error("not refused: " + said);
      }
      io::require_no_lost_steps(scratch / "c", 20, world);  // that one is not after it
    });
    CHECK_THROWS_MATCHES(restore(scratch / "c"), UserError,
                         MessageMatches(ContainsSubstring("this run would begin anew")));
  }
}

TEST_CASE("other names that begin like a step's are named, and what is not ours is not") {
  const ScratchFolder scratch;
  for (const char* name : {"step-10", "step-000000010.old", "step-0000000010"}) {
    fs::create_directories(scratch / "c" / name);
  }
  for (const char* name :
       {"steps", "step-", "step-notes", "lost+found", ".snapshot", "Step-000000010", "step-10-x",
        "step--10", "damaged-step-000000010-abc", ".tmp-step-000000010-abc"}) {
    fs::create_directories(scratch / "c" / name);
  }
  std::vector<std::string> passed_over;
  for (const io::PassedOver& entry : io::passed_over_in(scratch / "c")) {
    passed_over.push_back(entry.path.filename().string());
    CHECK_FALSE(entry.step);
    CHECK_THAT(entry.why, ContainsSubstring("that of 10 is step-000000010"));
  }
  CHECK(passed_over ==
        std::vector<std::string>{"step-0000000010", "step-000000010.old", "step-10", "step-10-x"});
  CHECK_THAT(restore(scratch / "c").log, ContainsSubstring("step-10: is passed over"));
}

TEST_CASE("a run that begins anew says so where LATEST names a step") {
  const ScratchFolder scratch;
  REQUIRE(try_save(scratch / "c", 2, 10).codes == std::vector{0, 0});
  CHECK(restore(scratch / "c").log.empty());
  fs::rename(scratch / "c/step-000000010", scratch / "moved");
  const Restored restored = restore(scratch / "c");
  CHECK(restored.step == -1);
  CHECK_THAT(restored.log, ContainsSubstring("step 10 was the last one that was saved there"));
  std::ofstream(scratch / "c/LATEST") << "10";
  CHECK(restore(scratch / "c").log.empty());
}

TEST_CASE(
    "a directory of steps that is a link is followed, and one that leads nowhere is refused") {
  const ScratchFolder scratch;
  REQUIRE(try_save(scratch / "real", 2, 10).codes == std::vector{0, 0});
  fs::create_directory_symlink("real", scratch / "c");
  CHECK(restore(scratch / "c").step == 10);
  fs::create_directory_symlink("not/mounted", scratch / "d");
  CHECK_THROWS_MATCHES(restore(scratch / "d"), UserError,
                       MessageMatches(ContainsSubstring("is a link to not/mounted")));
  CHECK_THROWS_AS(io::list_steps(scratch / "d"), UserError);
}
