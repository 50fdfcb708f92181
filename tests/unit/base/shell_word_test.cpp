// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/text.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstdio>
#include <memory>
#include <string>

using fourfold::shell_word;

namespace {

/// What a POSIX shell makes of it.
std::string word_in_shell(const std::string& written) {
  const std::unique_ptr<FILE, int (*)(FILE*)> shell(::popen(("printf %s " + written).c_str(), "r"),
                                                    ::pclose);
  REQUIRE(shell);
  std::array<char, 256> text{};
  return {text.data(), std::fread(text.data(), 1, text.size(), shell.get())};
}

}  // namespace

TEST_CASE("a word of a shell is one word, whatever is in it", "[shell_word]") {
  CHECK(shell_word("run.toml") == "'run.toml'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  for (const std::string word :
       {"", "a b", "it's", "''", "$HOME `id` \\ \"x\" * ? ~ !", "-n", "a\nb"}) {
    CAPTURE(word);
    CHECK(word_in_shell(shell_word(word)) == word);
  }
}
