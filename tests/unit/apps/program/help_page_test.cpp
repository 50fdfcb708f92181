// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/program/help_page.hpp>

#include <catch2/catch_test_macros.hpp>

#include <sstream>
#include <string>
#include <vector>

using fourfold::program::fit_lines;

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  return words;
}

const std::string page =
    "Does what a file says.\n"
    "Usage: program [OPTIONS] FILE\n"
    "\n"
    "Options:\n"
    "  --set KEY=VALUE ...         Override a key of the file; may be given several times\n"
    "  --quite-a-long-name-of-an-option TEXT:{one,two,three}=one\n"
    "                              Which one\n"
    "FILES\n"
    "  exit.json        how the run ended (\"running\" until it has); trust it over the "
    "launcher's\n"
    "                   exit code. A start that is refused leaves all files as they are\n"
    "  STOP             make this file and the run saves\n"
    "\n"
    "EXAMPLES\n"
    "  program train run.toml --set train.steps=2000    # train longer\n"
    "  program train run.toml\n";

}  // namespace

TEST_CASE("a page that fits is shown as it is", "[help_page]") {
  CHECK(fit_lines(page, 100) == page);
  CHECK(fit_lines("", 80).empty());
  CHECK(fit_lines("no end of line", 80) == "no end of line\n");
}

TEST_CASE("lines go on below their text, and no word is cut", "[help_page]") {
  CHECK(fit_lines("  --set KEY=VALUE ...         Override a key of the file; may be given\n", 50) ==
        "  --set KEY=VALUE ...         Override a key of\n"
        "                              the file; may be\n"
        "                              given\n");
  CHECK(fit_lines("  one two three four five six\n", 20) == "  one two three four\n  five six\n");
  CHECK(fit_lines("--a-word-that-is-longer-than-the-terminal\n", 20) ==
        "--a-word-that-is-longer-than-the-terminal\n");
  for (std::size_t columns = 24; columns <= 120; ++columns) {
    INFO(columns);
    const std::string fitted = fit_lines(page, columns);
    CHECK(words_of(fitted) == words_of(page));
    std::istringstream lines(fitted);
    for (std::string line; std::getline(lines, line);) {
      INFO(line);
      CHECK((line.size() <= columns || words_of(line).size() == 1));
      CHECK((line.empty() || line.back() != ' '));
    }
  }
}

TEST_CASE("a sentence that its author broke is one again where it must be broken anew",
          "[help_page]") {
  const std::string sentence =
      "  exit.json        how the run ended (\"running\" until it has); trust it over the "
      "launcher's\n"
      "                   exit code. A start that is refused leaves all files as they are\n";
  CHECK(fit_lines(sentence, 80) ==
        "  exit.json        how the run ended (\"running\" until it has); trust it over the\n"
        "                   launcher's exit code. A start that is refused leaves all\n"
        "                   files as they are\n");
  // Two examples are two lines, however long.
  CHECK(fit_lines("  program train run.toml --set train.steps=2000\n  program train run.toml\n",
                  40) ==
        "  program train run.toml --set\n  train.steps=2000\n  program train run.toml\n");
}
