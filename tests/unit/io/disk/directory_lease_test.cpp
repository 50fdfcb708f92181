// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_log.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/directory_lease.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

using namespace fourfold;
using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::Message;
using Catch::Matchers::MessageMatches;
using harness::ScratchFolder;
using io::DirectoryLease;
using io::LeaseHolder;
using io::LeaseOptions;
namespace fs = std::filesystem;

namespace {

const LeaseOptions quick{.beat = 20ms, .silence = 400ms};

LeaseHolder elsewhere(const std::string& host, const std::string& job = "") {
  return {.host = host, .pid = 77, .job = job};
}

void write_lease(const fs::path& directory, const std::string& text) {
  fs::create_directories(directory);
  std::ofstream(directory / ".lease") << text;
}

bool is_empty_of_leases(const fs::path& directory) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().filename().string().starts_with(".lease")) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("the second job is refused while the first one lives, and may when it is done",
          "[lease]") {
  const ScratchFolder scratch;
  {
    const DirectoryLease first(scratch / "c", elsewhere("node1", "41"), quick);
    const auto me = LeaseHolder::this_process();
    const auto holder = io::living_holder_of(scratch / "c", me, quick.name);
    REQUIRE(holder);
    CHECK(holder->str() == "job 41 (process 77 on node1)");
    const harness::CapturedLog log;
    CHECK_THROWS_MATCHES(
        DirectoryLease(scratch / "c", elsewhere("node2", "42"), quick), UserError,
        MessageMatches(ContainsSubstring("job 41 (process 77 on node1) is running")));
    first.check();
  }
  CHECK(is_empty_of_leases(scratch / "c"));
  const DirectoryLease second(scratch / "c", elsewhere("node2", "42"), quick);
  second.check();
}

/// How a process ends that asks for its lease.
ExitCode code_of(const DirectoryLease& lease) {
  try {
    lease.check();
  } catch (const UserError& error) {
    return error.code();
  }
  return ExitCode::finished;
}

TEST_CASE("a lease that nobody counts up is taken over, and its holder learns it", "[lease]") {
  const ScratchFolder scratch;
  write_lease(scratch / "c", "fourfold-lease 1 aaaa node1 - 77 41 0 12\n");
  const harness::CapturedLog log;
  const auto start = std::chrono::steady_clock::now();
  const DirectoryLease lease(scratch / "c", elsewhere("node2", "42"), quick);
  CHECK(std::chrono::steady_clock::now() - start >= quick.silence);
  CHECK(log.text().find("is silent and is taken over") != std::string::npos);
  lease.check();
  write_lease(scratch / "c", "fourfold-lease 1 bbbb node3 - 5 43 0 1\n");  // somebody did the same
  CHECK_THROWS_MATCHES(lease.check(), UserError,
                       MessageMatches(ContainsSubstring("is lost to job 43 (process 5 on node3)")));
  CHECK(code_of(lease) == ExitCode::no_progress);
}

TEST_CASE("a lease that somebody removed is made again by its holder", "[lease]") {
  const ScratchFolder scratch;
  const DirectoryLease first(scratch / "c", elsewhere("node1", "41"), quick);
  fs::remove(scratch / "c" / ".lease");
  first.check();
  CHECK(fs::exists(scratch / "c" / ".lease"));
  const harness::CapturedLog log;
  CHECK_THROWS_MATCHES(
      DirectoryLease(scratch / "c", elsewhere("node2", "42"), quick), UserError,
      MessageMatches(ContainsSubstring("job 41 (process 77 on node1) is running")));
}

TEST_CASE("a directory that somebody moves away takes nobody's lease over", "[lease]") {
  const bool comes_again = GENERATE(false, true);
  const ScratchFolder scratch;
  const DirectoryLease lease(scratch / "c", elsewhere("node1", "41"), quick);
  fs::rename(scratch / "c", scratch / "away");
  if (comes_again) {
    fs::create_directory(scratch / "c");
  }
  const auto says_so = [&] {
    CHECK_THROWS_MATCHES(lease.check(), UserError,
                         MessageMatches(ContainsSubstring("was removed, moved or replaced")));
    CHECK(code_of(lease) == ExitCode::cannot_write);
    CHECK_FALSE(lease.is_held());
  };
  says_so();
  fs::remove(scratch / "c");
  fs::rename(scratch / "away", scratch / "c");  // it may have changed meanwhile
  says_so();
}

TEST_CASE("a lease that cannot be read for a while is not given up", "[lease]") {
  const ScratchFolder scratch;
  const DirectoryLease lease(scratch / "c", elsewhere("node1", "41"), quick);
  fs::create_directory(scratch / "c" / "wall");  // nothing that could be read
  const auto change_places = [&] {               // at no moment is there nothing
    return ::renameat2(AT_FDCWD, (scratch / "c" / ".lease").c_str(), AT_FDCWD,
                       (scratch / "c" / "wall").c_str(), RENAME_EXCHANGE);
  };
  REQUIRE(change_places() == 0);
  std::this_thread::sleep_for(100ms);
  lease.check();
  REQUIRE(change_places() == 0);
  lease.check();
}

TEST_CASE("who is gone for sure is not waited for", "[lease]") {
  const ScratchFolder scratch;
  const LeaseOptions patient{.beat = 20ms, .silence = 1h};
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  const LeaseHolder me = LeaseHolder::this_process();
  const auto line_in = [&](const std::string& processes) {
    return "fourfold-lease 1 aaaa " + me.host + " " + processes + " " + std::to_string(child) +
           " - 0 12\n";
  };
  REQUIRE_FALSE(me.processes.empty());
  write_lease(scratch / "c", line_in(me.processes));
  const DirectoryLease after_crash(scratch / "c", me, patient);
  // The same number in another container, or before the machine was started anew, tells nothing.
  for (const std::string& other : {std::string("-"), "x" + me.processes}) {
    write_lease(scratch / "e", line_in(other));
    const harness::CapturedLog log;
    const DirectoryLease watched(scratch / "e", me, quick);
    CHECK(log.text().find("is silent and is taken over") != std::string::npos);
  }
}

TEST_CASE("who ends while it is watched, asked for by nobody, is not waited for any longer",
          "[lease]") {
  const ScratchFolder scratch;
  const LeaseOptions patient{.beat = 20ms, .silence = 1h};
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  const LeaseHolder me = LeaseHolder::this_process();
  LeaseHolder holder = me;
  holder.pid = child;
  CHECK_FALSE(holder.is_gone_from_machine_of(me));
  write_lease(scratch / "c", "fourfold-lease 1 aaaa " + me.host + " " + me.processes + " " +
                                 std::to_string(child) + " - 0 12\n");
  const harness::CapturedLog log;
  {
    const std::jthread ends_it([&] {
      std::this_thread::sleep_for(200ms);
      ::kill(child, SIGKILL);
    });
    const DirectoryLease lease(scratch / "c", me, patient);
    CHECK(holder.is_gone_from_machine_of(me));
    lease.check();
  }
  CHECK(::kill(child, 0) == 0);  // though it still is there, as a zombie
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("a zombie of which a thread still runs is not gone", "[lease]") {
  std::array<int, 2> pipe{};
  REQUIRE(::pipe(pipe.data()) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([&] {
      char byte = 0;
      while (::read(pipe[0], &byte, 1) != 1) {
      }
      ::_exit(0);
    }).detach();
    ::syscall(SYS_exit, 0);  // of this thread alone
  }
  const LeaseHolder me = LeaseHolder::this_process();
  LeaseHolder holder = me;
  holder.pid = child;
  const auto state = [&] {
    std::string text;
    std::getline(std::ifstream("/proc/" + std::to_string(child) + "/stat"), text);
    return text.at(text.rfind(") ") + 2);
  };
  for (int k = 0; k < 500 && state() != 'Z'; ++k) {
    std::this_thread::sleep_for(10ms);
  }
  REQUIRE(state() == 'Z');
  CHECK_FALSE(holder.is_gone_from_machine_of(me));
  REQUIRE(::write(pipe[1], "x", 1) == 1);
  ::waitpid(child, nullptr, 0);
  CHECK(holder.is_gone_from_machine_of(me));
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST_CASE("a later start of a job takes the lease of one that lives, and never shares it",
          "[lease]") {
  const ScratchFolder scratch;
  const LeaseOptions patient{.beat = 100ms, .silence = 1h};
  const bool is_chain = GENERATE(false, true);
  LeaseHolder first = elsewhere("node1", "41");
  LeaseHolder again = elsewhere("node2", is_chain ? "103" : "41");
  first.chain = again.chain = is_chain ? "41" : "";
  again.restarts = is_chain ? 0 : 1;
  const harness::CapturedLog log;
  const DirectoryLease stale(scratch / "c", first, patient);
  CHECK(stale.is_held());
  std::atomic<bool> has_it = false;
  std::thread starts([&] {
    const DirectoryLease later(scratch / "c", again, patient);
    has_it = true;
    while (has_it) {
      std::this_thread::sleep_for(1ms);
    }
  });
  bool both = false;
  for (bool taken = false; !taken; std::this_thread::sleep_for(1ms)) {
    taken = has_it;  // before the question: what it answers may be older
    both = both || (taken && stale.is_held());
  }
  CHECK_FALSE(both);
  CHECK_FALSE(stale.is_held());
  CHECK_THROWS_MATCHES(
      stale.check(), UserError,
      MessageMatches(ContainsSubstring("c: " + again.str() + " is a later start of this run")));
  CHECK(code_of(stale) == ExitCode::no_progress);
  has_it = false;
  starts.join();
  CHECK_FALSE(stale.is_held());  // nor after the end of the other
  CHECK(log.text().find("took the lease of this directory from an earlier start") !=
        std::string::npos);
  // Dead or not, the earlier one has no right to it.
  write_lease(scratch / "d",
              "fourfold-lease 1 aaaa node1 - 77 41 0 12 " + (is_chain ? first.chain : "-") + "\n");
  const DirectoryLease after_requeue(scratch / "d", again, patient);
  CHECK(after_requeue.is_held());
}

TEST_CASE("what a start says before it overtakes another is said while that one has the lease",
          "[lease]") {
  const ScratchFolder scratch;
  LeaseOptions options{.beat = 50ms, .silence = 1h};
  const LeaseHolder first = elsewhere("node1", "41");
  LeaseHolder again = elsewhere("node2", "41");
  again.restarts = 1;
  const DirectoryLease stale(scratch / "c", first, options);
  options.before_overtaking = [] { throw UserError(ExitCode::no_progress, "stuck"); };
  CHECK_THROWS_MATCHES(DirectoryLease(scratch / "c", again, options), UserError, Message("stuck"));
  std::this_thread::sleep_for(3 * options.beat);
  CHECK(stale.is_held());  // a start that is refused then takes nothing
  CHECK(living_holder_of(scratch / "c", again, ".lease") == first);

  int said = 0;
  options.before_overtaking = [&] {
    ++said;
    CHECK(living_holder_of(scratch / "c", again, ".lease") == first);
  };
  const DirectoryLease later(scratch / "c", again, options);
  CHECK(said == 1);
  CHECK_FALSE(stale.is_held());
  // Nobody lives on: there is nothing to say.
  const DirectoryLease alone(scratch / "d", again, options);
  CHECK(said == 1);
}

TEST_CASE("who is known to be gone by another lease is not watched again", "[lease]") {
  const ScratchFolder scratch;
  write_lease(scratch / "c", "fourfold-lease 1 aaaa node1 - 77 41 0 12\n");
  write_lease(scratch / "d", "fourfold-lease 1 bbbb node1 - 77 41 0 3\n");
  write_lease(scratch / "e", "fourfold-lease 1 cccc node1 - 78 41 0 3\n");
  const harness::CapturedLog log;
  const DirectoryLease first(scratch / "c", elsewhere("node2", "42"), quick);
  CHECK(first.left_by() == elsewhere("node1", "41"));
  LeaseOptions patient{.beat = 20ms, .silence = 1h};
  patient.gone = first.left_by();
  const DirectoryLease second(scratch / "d", elsewhere("node2", "42"), patient);
  CHECK(second.is_held());
  patient.silence = 400ms;
  const auto start = std::chrono::steady_clock::now();
  const DirectoryLease third(scratch / "e", elsewhere("node2", "42"), patient);  // another process
  CHECK(std::chrono::steady_clock::now() - start >= patient.silence);
  const DirectoryLease fourth(scratch / "f", elsewhere("node2", "42"), quick);
  CHECK_FALSE(fourth.left_by());
}

TEST_CASE("leases of different names are kept apart, and show whose they are", "[lease]") {
  const ScratchFolder scratch;
  const fs::path folder = scratch / "c";
  LeaseOptions named = quick;
  named.name = ".run-lease";
  const LeaseHolder holder = elsewhere("node1", "41");
  const LeaseHolder me = LeaseHolder::this_process();
  CHECK_FALSE(io::living_holder_of(folder, me, named.name));
  {
    const DirectoryLease run(folder, holder, named);
    const DirectoryLease checkpoints(folder, holder, quick);
    CHECK(fs::exists(folder / ".run-lease"));
    const auto found = io::living_holder_of(folder, me, named.name);
    REQUIRE(found);
    CHECK(found->is_of_start(elsewhere("node2", "41")));
    CHECK_FALSE(found->is_of_start(elsewhere("node1", "42")));
    LeaseHolder again = elsewhere("node1", "41");
    again.restarts = 1;
    CHECK_FALSE(found->is_of_start(again));
  }
  CHECK_FALSE(io::living_holder_of(folder, me, named.name));
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  write_lease(folder, "fourfold-lease 1 aaaa " + me.host + " " + me.processes + " " +
                          std::to_string(child) + " - 0 12\n");
  CHECK_FALSE(io::living_holder_of(folder, me, ".lease"));
}

TEST_CASE("of many that find a lease left behind one gets it", "[lease]") {
  const ScratchFolder scratch;
  for (int round = 0; round < 8; ++round) {
    write_lease(scratch / "c", "fourfold-lease 1 aaaa node1 - 77 41 0 12\n");
    const harness::CapturedLog log;
    std::vector<std::optional<DirectoryLease>> leases(6);
    std::atomic<int> refused{0};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < leases.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          leases[i].emplace(
              scratch / "c", elsewhere("node" + std::to_string(2 + i)),
              LeaseOptions{.beat = 10ms, .silence = 300ms, .has_links = round % 2 == 0});
        } catch (const UserError&) {
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    std::this_thread::sleep_for(50ms);
    int holding = 0;
    for (const auto& lease : leases) {
      try {
        if (lease) {
          lease->check();
          ++holding;
        }
      } catch (const UserError&) {
        ++refused;  // it learns that another has it
      }
    }
    CHECK(holding == 1);
    CHECK(refused == 5);
  }
}

namespace {

/// Runs `body` in a process of its own. @return its number
template <class Body>
pid_t in_process(const Body& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    int code = 0;
    try {
      body();
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
    }
    ::_exit(code);
  }
  return child;
}

int exit_code_of(pid_t child) {
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("who stood still while another came and went has lost the lease", "[lease]") {
  const ScratchFolder scratch;
  const bool comes_and_goes = GENERATE(true, false);
  std::array<int, 2> has_it{};
  std::array<int, 2> goes_on{};
  REQUIRE((::pipe(has_it.data()) == 0 && ::pipe(goes_on.data()) == 0));
  const pid_t child = in_process([&] {
    const DirectoryLease lease(scratch / "c", elsewhere("node1", "41"), quick);
    char byte = 0;
    if (::write(has_it[1], &byte, 1) != 1 || ::read(goes_on[0], &byte, 1) != 1) {
      ::_exit(9);
    }
    lease.check();
  });
  char byte = 0;
  REQUIRE(::read(has_it[0], &byte, 1) == 1);
  if (comes_and_goes) {
    ::kill(child, SIGSTOP);
    { const DirectoryLease other(scratch / "c", elsewhere("node2", "42"), quick); }
    CHECK_FALSE(fs::exists(scratch / "c" / ".lease"));
    ::kill(child, SIGCONT);
  } else {
    fs::remove(scratch / "c" / ".lease");  // by somebody, while it lives
  }
  REQUIRE(::write(goes_on[1], &byte, 1) == 1);
  CHECK(exit_code_of(child) == (comes_and_goes ? 93 : 0));
  for (const int end : {has_it[0], has_it[1], goes_on[0], goes_on[1]}) {
    ::close(end);
  }
}

TEST_CASE("a lease left behind that only its owner may remove is told of", "[lease]") {
  if (::geteuid() != 0) {
    SKIP("needs root, to be two users");
  }
  const ScratchFolder scratch;
  fs::permissions(scratch.path(), fs::perms::all);
  write_lease(scratch / "c", "fourfold-lease 1 aaaa node1 - 77 41 1 12\n");
  fs::permissions(scratch / "c", fs::perms::all | fs::perms::sticky_bit);
  fs::permissions(scratch / "c" / ".lease", fs::perms::group_read | fs::perms::others_read,
                  fs::perm_options::add);
  const pid_t child = in_process([&] {
    constexpr uid_t nobody = 65534;
    if (::setuid(nobody) != 0) {
      ::_exit(9);
    }
    const DirectoryLease lease(scratch / "c",
                               {.host = "node2", .pid = 5, .job = "41", .restarts = 2}, quick);
  });
  CHECK(exit_code_of(child) == 73);
  CHECK(harness::read_bytes(scratch / "c" / ".lease") ==
        "fourfold-lease 1 aaaa node1 - 77 41 1 12\n");
}
