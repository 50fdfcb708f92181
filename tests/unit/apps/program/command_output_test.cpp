// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/program/command_output.hpp>

#include <catch2/catch_test_macros.hpp>

#include <csignal>
#include <string>

using namespace std::chrono_literals;
using fourfold::program::CommandOutput;
using fourfold::program::output_of;

TEST_CASE("a program's words and its exit code, without a shell", "[command_output]") {
  const auto words = output_of({"printf", "%s|", "a b", "$HOME", "*"});
  REQUIRE(words);
  CHECK(words->text == "a b|$HOME|*|");
  CHECK(words->is_answer());
  const auto killed = output_of({"sh", "-c", "kill -9 $$"});
  REQUIRE(killed);
  CHECK(killed->code == -1);
  CHECK(killed->failure() == "was ended by a signal");
  CHECK_FALSE(output_of({"no-such-program-of-fourfold"}));
}

TEST_CASE("warnings on standard error are no part of an answer", "[command_output]") {
  const auto both = output_of({"sh", "-c", "echo 'warning: 12' >&2; echo 4711; echo more >&2"});
  REQUIRE(both);
  CHECK(both->text == "4711\n");
  CHECK(both->errors == "warning: 12\nmore\n");
  const auto failed = output_of({"sh", "-c", "echo banner; echo why >&2; exit 3"});
  REQUIRE(failed);
  CHECK(failed->code == 3);
  CHECK_FALSE(failed->is_answer());
  CHECK(failed->failure() == "ended with code 3: why");
  CHECK(CommandOutput{4, "first\nlast\n\n"}.failure() == "ended with code 4: last");
  CHECK(CommandOutput{5, "", " \n"}.failure() == "ended with code 5");
}

TEST_CASE("a program that says much on both streams is read to its end", "[command_output]") {
  // More than a pipe holds, on one stream before the other.
  const auto much = output_of(
      {"sh", "-c", "head -c 300000 /dev/zero >&2; head -c 400000 /dev/zero; echo end >&2"});
  REQUIRE(much);
  CHECK(much->text.size() == 400000);
  CHECK(much->errors.size() == 300004);
}

TEST_CASE("a program that hangs, or never stops talking, is ended", "[command_output]") {
  for (const char* const command :
       {"exec sleep 1000", "exec >&- 2>&-; exec sleep 1000", "trap '' TERM; exec sleep 1000"}) {
    CAPTURE(command);
    const auto hung = output_of({"sh", "-c", command}, {.time = 100ms});
    REQUIRE(hung);
    CHECK_FALSE(hung->is_answer());
    CHECK(hung->failure() == "has not answered for 0.1 s and was ended");
  }
  for (const char* const command : {"exec yes", "exec yes >&2", "head -c 5000 /dev/zero"}) {
    CAPTURE(command);
    const auto endless = output_of({"sh", "-c", command}, {.bytes = 4096});
    REQUIRE(endless);
    CHECK_FALSE(endless->is_answer());
    CHECK(endless->failure() == "has said more than 4096 bytes and was ended");
  }
}

TEST_CASE("what a program leaves in the background is not waited for", "[command_output]") {
  // It holds both streams open until the one after it has been read.
  const auto done = output_of({"sh", "-c", "sleep 20 & echo $!"});
  REQUIRE(done);
  CHECK(done->is_answer());
  ::kill(static_cast<pid_t>(std::stol(done->text)), SIGKILL);
}

TEST_CASE("signals that this process ignores or blocks are the program's own again",
          "[command_output]") {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  sigset_t blocked;
  sigset_t old;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &blocked, &old);
  const auto piped = output_of({"sh", "-c", "kill -PIPE $$"});
  const auto ended = output_of({"sh", "-c", "kill -TERM $$"});
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  std::signal(SIGPIPE, before);
  CHECK(piped->failure() == "was ended by a signal");
  CHECK(ended->failure() == "was ended by a signal");
}

TEST_CASE("what is there but no program is told from what is missing", "[command_output]") {
  const auto folder = output_of({"/"});
  REQUIRE(folder);
  CHECK_FALSE(folder->is_answer());
  CHECK(folder->failure().find("cannot be run") == 0);
}
