// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/temporary.hpp"

#include "scratch_folder.hpp"

#include <fourfold/base/fatal_exit.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/made_folders.hpp>
#include <fourfold/io/temporary_name.hpp>

#include <catch2/catch_test_macros.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <set>
#include <string>

namespace fs = std::filesystem;
using namespace fourfold;
using harness::files_below;
using harness::ScratchFolder;

namespace {

constexpr std::array asking{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,   SIGUSR1, SIGUSR2,
                            SIGXCPU, SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF};

/// The signal that ends a process that does this; 0: none.
int signal_that_ends(const std::function<void()>& body) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int number : asking) {  // Catch2 has handlers of its own
      std::signal(number, SIG_DFL);
    }
    body();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("a signal that ends a process leaves nothing unfinished", "[temporary]") {
  for (const int number : asking) {
    CAPTURE(number);
    const ScratchFolder scratch;
    scratch.write("file", "older");
    const auto is_ended_by = signal_that_ends([&] {
      clean_up_on_signals(false);
      io::AtomicFile file(scratch / "file");
      file.write("half");
      io::NewFolder folder(scratch / "folder", 0);
      io::AtomicFile inner(folder.path() / "published");
      inner.publish();
      fs::create_directories(folder.path() / "deeper" / "still");
      harness::write_bytes(folder.path() / "deeper" / "still" / "bytes", "x");
      const io::AtomicFile unfinished(folder.path() / "unfinished");
      std::raise(number);
    });
    CHECK(is_ended_by == number);
    CHECK(files_below(scratch.path()) == std::map<std::string, std::string>{{"file", "older"}});
    CHECK(std::distance(fs::directory_iterator(scratch.path()), fs::directory_iterator()) == 1);
  }
}

TEST_CASE("a signal takes folders that were made for what has not come, no others", "[temporary]") {
  const ScratchFolder scratch;
  fs::create_directories(scratch / "mine");
  const auto is_ended_by = signal_that_ends([&] {
    clean_up_on_signals(false);
    const io::MadeFolders nested(scratch / "new" / "and" / "deeper");
    const io::AtomicFile unfinished(scratch / "new" / "and" / "deeper" / "file");
    const io::MadeFolders there(scratch / "mine");
    const io::MadeFolders visited(scratch / "visited");
    harness::write_bytes(scratch / "visited" / "by another", "x");
    io::MadeFolders kept(scratch / "kept");
    kept.keep();
    const io::MadeFolders moved = io::MadeFolders(scratch / "moved");
    std::raise(SIGTERM);
  });
  CHECK(is_ended_by == SIGTERM);
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(scratch.path())) {
    names.insert(entry.path().filename().string());
  }
  CHECK(names == std::set<std::string>{"kept", "mine", "visited"});
}

TEST_CASE("a signal gives back a lease that is this process's, with what lies below it",
          "[temporary]") {
  const io::LeaseHolder me = io::LeaseHolder::this_process();
  for (const bool is_taken_over : {false, true}) {
    CAPTURE(is_taken_over);
    const ScratchFolder scratch;
    const auto is_ended_by = signal_that_ends([&] {
      clean_up_on_signals(false);
      const io::MadeFolders made(scratch / "new" / "deep");
      const io::DirectoryLease lease(scratch / "new" / "deep", me, {.gone_at_signal = true});
      for (const auto& entry : fs::directory_iterator(scratch / "new" / "deep")) {
        if (entry.is_directory()) {
          fs::create_directories(entry.path() / ".tmp-step" / "x");
          harness::write_bytes(entry.path() / ".tmp-step" / "x" / "shard", "half");
        }
      }
      if (is_taken_over) {
        harness::write_bytes(scratch / "new" / "deep" / ".lease",
                             "fourfold-lease 1 0123456789abcdef node9 - 7 - 0 1 -\n");
      }
      std::raise(SIGINT);
    });
    CHECK(is_ended_by == SIGINT);
    CHECK(fs::exists(scratch / "new") == is_taken_over);
    CHECK(fs::exists(scratch / "new" / "deep" / ".lease") == is_taken_over);
  }
}

TEST_CASE("a signal that is ignored stays so, what a library has taken does not", "[temporary]") {
  const auto taken = [](int) {};
  CHECK(signal_that_ends([&] {
          std::signal(SIGHUP, SIG_IGN);  // as nohup does
          std::signal(SIGUSR1, SIG_IGN);
          clean_up_on_signals(false);
          std::raise(SIGHUP);
          std::raise(SIGUSR1);
        }) == 0);
  CHECK(signal_that_ends([&] {
          std::signal(SIGHUP, taken);  // before main(), though nohup had it ignored
          clean_up_on_signals(true);
          std::raise(SIGHUP);
        }) == 0);
  CHECK(signal_that_ends([&] {
          std::signal(SIGHUP, taken);
          clean_up_on_signals(false);
          std::raise(SIGHUP);
        }) == SIGHUP);
}

TEST_CASE("what killed processes have left is swept by the next of that name, no more",
          "[temporary]") {
  const ScratchFolder scratch;
  CHECK(signal_that_ends([&] {
          io::AtomicFile file(scratch / "file");
          file.sync();
          const io::NewFolder folder(scratch / "folder", 0);
          harness::write_bytes(folder.path() / "x", "x");
          std::raise(SIGKILL);
        }) == SIGKILL);
  REQUIRE(files_below(scratch.path()).size() == 2);
  scratch.write(".file2.tmp-fedcba9876543210", "of another");
  // What a person has called so, or a tool that knows nothing of us.
  const std::map<std::string, std::string> mine{{".file.tmp-0123456789abcdef.bak", "1"},
                                                {".file.tmp-1", "2"},
                                                {".file.tmp-2026112701234567", "3"},
                                                {".file.tmp-0123456789ABCDEF", "4"},
                                                {"file.tmp-20261127", "5"},
                                                {"file.tmp-0123456789abcdef", "6"},
                                                {"folder.tmp-2/sub/thesis.tex", "7"},
                                                {".folder.tmp-old/thesis.tex", "8"}};
  for (const auto& [name, text] : mine) {
    fs::create_directories((scratch / name).parent_path());
    scratch.write(name, text);
  }
  io::Temporary living(scratch / ".file.tmp-0123456789abcdef");  // of another node, perhaps
  scratch.write(".file.tmp-0123456789abcdef", "half");
  REQUIRE(living.lock());
  io::AtomicFile(scratch / "file").publish();
  io::NewFolder(scratch / "folder", 0).publish();
  std::map<std::string, std::string> expected{{".file.tmp-0123456789abcdef", "half"},
                                              {".file2.tmp-fedcba9876543210", "of another"},
                                              {"file", ""}};
  expected.insert(mine.begin(), mine.end());
  expected.erase(".file.tmp-2026112701234567");  // sixteen digits in a hidden name are ours
  CHECK(files_below(scratch.path()) == expected);
}

TEST_CASE("a temporary that was swept before it was locked is known as such", "[temporary]") {
  const ScratchFolder scratch;
  io::Temporary temporary(scratch / ".file.tmp-1");
  CHECK_FALSE(temporary.lock());
  scratch.write(".file.tmp-1", "half");
  CHECK(temporary.lock());
}

TEST_CASE("temporary names say whose they are", "[temporary]") {
  const ScratchFolder scratch;
  CHECK(io::temporary_sibling("a/b.bin", "12") == "a/.b.bin.tmp-12");
  CHECK(io::temporary_sibling("b", "0af") == ".b.tmp-0af");
  CHECK(io::name_of_temporary(".b.bin.tmp-0123456789abcdef") == "b.bin");
  CHECK(io::name_of_temporary("..hidden.tmp-0123456789abcdef") == ".hidden");
  CHECK(io::name_of_temporary(".b.tmp-1.tmp-0123456789abcdef") == "b.tmp-1");
  const io::Temporary one(io::temporary_sibling(scratch / "b.bin"));
  CHECK(one.path() != io::temporary_sibling(scratch / "b.bin"));
  CHECK(io::name_of_temporary(one.path().filename().string()) == "b.bin");
  for (const char* name :
       {"b.bin", ".b.tmp-", "b.tmp-", "b.tmp-ff", ".b.tmp-xy", ".tmp-12", "tmp-12", "",
        ".b.bin.tmp-12", "b.bin.tmp-77", "b.bin.tmp-0123456789abcdef", ".tmp-0123456789abcdef",
        ".b.tmp-0123456789abcdeg", ".b.tmp-0123456789abcde", ".b.tmp-0123456789abcdef0",
        ".tmp-step-000000003-0123456789abcdef", "b.tmp-1.bak"}) {
    CAPTURE(name);
    CHECK_FALSE(io::name_of_temporary(name));
  }
}

TEST_CASE("folders that were made for nothing go, and no others", "[made_folders]") {
  const ScratchFolder scratch;
  const fs::path deep = scratch / "a" / "b" / "c";
  {
    const io::MadeFolders made(deep);
    CHECK(fs::is_directory(deep));
  }
  CHECK_FALSE(fs::exists(scratch / "a"));
  fs::create_directory(scratch / "a");
  { const io::MadeFolders made(deep); }
  CHECK(fs::is_directory(scratch / "a"));  // it was there
  CHECK_FALSE(fs::exists(scratch / "a" / "b"));
  {
    const io::MadeFolders made(deep);
    scratch.write("a/b/somebody's", "x");
  }
  CHECK(fs::exists(scratch / "a" / "b"));  // somebody has come to it
  CHECK_FALSE(fs::exists(deep));
  {
    io::MadeFolders made(deep);
    made.keep();
  }
  CHECK(fs::is_directory(deep));
}
