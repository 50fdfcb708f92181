// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/program/command_output.hpp>

#include <catch2/catch_test_macros.hpp>

using fourfold::program::output_of;

TEST_CASE("a program's words and its exit code, without a shell", "[command_output]") {
  const auto both = output_of({"sh", "-c", "echo one; echo two >&2; exit 3"});
  REQUIRE(both);
  CHECK(both->code == 3);
  CHECK(both->text == "one\ntwo\n");
  const auto words = output_of({"printf", "%s|", "a b", "$HOME", "*"});
  REQUIRE(words);
  CHECK(words->text == "a b|$HOME|*|");
  const auto killed = output_of({"sh", "-c", "kill -9 $$"});
  REQUIRE(killed);
  CHECK(killed->code == -1);
  CHECK_FALSE(output_of({"no-such-program-of-fourfold"}));
}
