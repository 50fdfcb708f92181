// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/batch/kept_run.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <string>
#include <vector>

namespace fs = std::filesystem;
using namespace fourfold::batch;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::runfile::RunInput;

namespace {

const std::string text = "[train]\nsteps = 8 # my \"run\"\n";

/// A user's folder with a run file, a schedule and a tokenizer of two files.
struct UsersFiles {
  ScratchFolder scratch;
  fs::path run_file = scratch.write("mine.toml", text);
  std::vector<RunInput> inputs = {
      {.key = "mesh.schedule",
       .value = "a \"b\".csv",
       .files = {{scratch.write("a \"b\".csv", "0,F,0,0\n"), "0,F,0,0\n"}}},
      {.key = "data.tokenizer",
       .value = "vocab.json",
       .files = {{scratch.write("vocab.json", "{}"), "{}"},
                 {scratch.write("merges.txt", "a b\n"), "a b\n"}}}};
  fs::path submitted = scratch / "run/submitted";

  KeptRun keep(const std::string& name = "17") const {
    return keep_run(submitted, name, run_file, text, inputs);
  }
};

ExitCode code_of(const auto& call) {
  try {
    call();
  } catch (const UserError& error) {
    return error.code();
  }
  return ExitCode::finished;
}

}  // namespace

TEST_CASE("a kept run is byte for byte what was there, and is found by its run file",
          "[kept_run]") {
  const UsersFiles users;
  const KeptRun kept = users.keep();
  CHECK(kept.run_file() == users.submitted / "17/run.toml");
  CHECK(read_bytes(kept.run_file()) == text);
  const auto found = kept_run_of(users.submitted / "17/../17/run.toml");
  REQUIRE(found);
  for (const KeptRun& one : {kept, *found}) {
    REQUIRE(one.files.size() == 4);
    CHECK(one.files[0].origin == users.run_file);
    CHECK(read_bytes(one.files[1].copy) == "0,F,0,0\n");
    CHECK(read_bytes(one.files[2].copy) == "{}");
    CHECK(read_bytes(one.files[3].copy) == "a b\n");
    // The merges lie beside the vocabulary, and no key takes them.
    CHECK(one.files[2].copy.parent_path() == one.files[3].copy.parent_path());
    const std::string at = (users.submitted / "17").string();
    CHECK(one.overrides() ==
          std::vector<std::string>{"mesh.schedule=\"" + at + "/mesh.schedule/a \\\"b\\\".csv\"",
                                   "data.tokenizer=\"" + at + "/data.tokenizer/vocab.json\""});
  }
  // What is typed counts where it is not what was kept.
  const std::vector<std::string> same{"data.tokenizer='vocab.json'", "train.steps=3"};
  CHECK(kept.overrides(same).size() == 2);
  const std::vector<std::string> another{"data.tokenizer=byte", "mesh.schedule=gpipe"};
  CHECK(kept.overrides(another).empty());
  CHECK_FALSE(kept_run_of(users.run_file));
  CHECK_FALSE(kept_run_of(users.scratch.write("run.toml", text)));
}

TEST_CASE("what a user changes or removes is named, and changes nothing that is kept",
          "[kept_run]") {
  const UsersFiles users;
  const KeptRun kept = users.keep();
  CHECK(kept.changed_origins().empty());
  users.scratch.write("mine.toml", "[train]\nsteps = 9\n");
  fs::remove(users.scratch / "merges.txt");
  CHECK(kept.changed_origins() ==
        std::vector<fs::path>{users.run_file, users.scratch / "merges.txt"});
  CHECK(read_bytes(kept.run_file()) == text);
  users.scratch.write("mine.toml", text);
  users.scratch.write("merges.txt", "a b\n");
  CHECK(kept.changed_origins().empty());
}

TEST_CASE("each submission has a folder of its own, and each run file of a chain", "[kept_run]") {
  const UsersFiles users;
  const fs::path other = users.scratch.write("other.toml", text);
  CHECK_FALSE(kept_run_named(users.submitted, "17", users.run_file));
  users.keep();
  CHECK_FALSE(kept_run_named(users.submitted, "17", other));
  keep_run(users.submitted, "17", other, text, {});
  const KeptRun again = users.keep();
  CHECK(again.folder == users.submitted / "17-3");
  CHECK(kept_run_named(users.submitted, "17", users.run_file)->folder == again.folder);
  CHECK(kept_run_named(users.submitted, "17", other)->folder == users.submitted / "17-2");
  CHECK_FALSE(kept_run_named(users.submitted, "18", users.run_file));
  forget(again);
  CHECK(kept_run_named(users.submitted, "17", users.run_file)->folder == users.submitted / "17");
  forget(*kept_run_named(users.submitted, "17", other));
  forget(*kept_run_named(users.submitted, "17", users.run_file));
  CHECK_FALSE(fs::exists(users.submitted));
}

TEST_CASE("a run file that is changed while it is read is not kept", "[kept_run]") {
  const UsersFiles users;
  users.scratch.write("mine.toml", text + "\n");
  CHECK(code_of([&] { users.keep(); }) == ExitCode::config);
  CHECK_FALSE(fs::exists(users.submitted));
  // Nor is anything where something of the user's has the folder's name.
  users.scratch.write("mine.toml", text);
  fs::create_directories(users.submitted.parent_path());
  users.scratch.write("run/submitted", "my list");
  CHECK(code_of([&] { users.keep(); }) == ExitCode::config);
  CHECK(read_bytes(users.submitted) == "my list");
  fs::remove(users.submitted);
  fs::create_directories(users.scratch / "elsewhere");
  fs::create_directory_symlink(users.scratch / "elsewhere", users.submitted);
  CHECK(code_of([&] { users.keep(); }) == ExitCode::config);
  CHECK(fs::is_empty(users.scratch / "elsewhere"));
}

TEST_CASE("names that end like numbers are not each other's, and what a user adds stays",
          "[kept_run]") {
  const UsersFiles users;
  users.keep("sweep");
  users.scratch.write("mine.toml", text + "# later\n");
  keep_run(users.submitted, "sweep", users.run_file, text + "# later\n", {});  // sweep-2
  CHECK_FALSE(kept_run_named(users.submitted, "sweep-2", users.run_file));
  users.scratch.write("mine.toml", text + "# other\n");
  const KeptRun other =
      keep_run(users.submitted, "sweep-2", users.run_file, text + "# other\n", {});
  CHECK(other.folder == users.submitted / "sweep-2-2");
  CHECK(kept_run_named(users.submitted, "sweep-2", users.run_file)->folder == other.folder);
  CHECK(kept_run_named(users.submitted, "sweep", users.run_file)->folder ==
        users.submitted / "sweep-2");
  // One is missing.
  forget(*kept_run_of(users.submitted / "sweep/run.toml"));
  CHECK(kept_run_named(users.submitted, "sweep", users.run_file)->folder ==
        users.submitted / "sweep-2");
  users.scratch.write("run/submitted/sweep-2-2/notes.txt", "mine");
  forget(other);
  CHECK(read_bytes(users.submitted / "sweep-2-2/notes.txt") == "mine");
  CHECK_FALSE(fs::exists(users.submitted / "sweep-2-2/run.toml"));
  // A kept.json of another program, elsewhere, says nothing.
  users.scratch.write("kept.json", "what I kept");
  CHECK_FALSE(kept_run_of(users.scratch.write("run.toml", text)));
}

TEST_CASE("a run file that no copy can stand in for is said to be one", "[kept_run]") {
  const UsersFiles users;
  CHECK_FALSE(why_not_kept(users.scratch / "run", users.run_file));
  fs::create_directories(users.scratch / "run");
  const fs::path own = users.scratch.write("run/config.toml", text);
  CHECK(why_not_kept(users.scratch / "run", own));
  for (const char* name : {"r\xe9.toml", "two\nlines.toml", "esc\x1b[1m.toml"}) {
    CAPTURE(name);
    CHECK(why_not_kept(users.scratch / "run", users.scratch / name));
    CHECK(why_not_kept(users.scratch / name, users.run_file));
  }
}

TEST_CASE("a record that is damaged, or leads out of its folder, is refused", "[kept_run]") {
  const UsersFiles users;
  const KeptRun kept = users.keep();
  const fs::path record = kept.folder / "kept.json";
  const std::string whole = read_bytes(record);
  for (const char* copy : {"../../../mine.toml", "/etc/hostname", "a/../../mine.toml", ""}) {
    CAPTURE(copy);
    std::string wrong = whole;
    const std::string was = "\"copy\": \"run.toml\"";
    REQUIRE(wrong.find(was) != std::string::npos);
    wrong.replace(wrong.find(was), was.size(), "\"copy\": \"" + std::string(copy) + "\"");
    fourfold::harness::write_bytes(record, wrong);
    CHECK(code_of([&] { kept_run_of(kept.run_file()); }) == ExitCode::data_corrupt);
  }
  for (
      const char* wrong :
      {"", "{}", "[]", R"({"name":"17","files":[]})", R"({"files":[{"key":"a"}]})",
       R"({"name":"17","files":[{"key":"","value":"","origin":"b","copy":"c"},{"key":"optim.lr","value":"","origin":"b","copy":"c"}]})"}) {
    CAPTURE(wrong);
    fourfold::harness::write_bytes(record, wrong);
    CHECK(code_of([&] { kept_run_of(kept.run_file()); }) == ExitCode::data_corrupt);
  }
  fourfold::harness::write_bytes(record, whole);
  CHECK(kept_run_of(kept.run_file()));
}
