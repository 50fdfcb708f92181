// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <random>
#include <string>
#include <string_view>

namespace fourfold::schedule {
namespace {

using Catch::Matchers::ContainsSubstring;

std::string refusal(const std::string& text, int stages = 0, int micro_batches = 0) {
  try {
    read_schedule_csv(text, "my.csv", stages, micro_batches);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), ContainsSubstring("mesh.schedule: my.csv "));
    return error.what();
  }
  return "";
}

TEST_CASE("a schedule that is written is read back the same", "[schedule_csv]") {
  const auto schedule_name = GENERATE("naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v");
  Schedule schedule = make_schedule({.name = schedule_name, .stages = 3, .micro_batches = 7});
  const Schedule read = read_schedule_csv(schedule_csv(schedule), "again.csv", 3, 7);
  schedule.name = "again.csv";
  CHECK(read == schedule);
}

TEST_CASE("empty cells, comments, lines around the ranks and line ends of other systems are read",
          "[schedule_csv]") {
  const std::string text =
      "# my own\r\n"
      "\r\n"
      "F0 , F1,,,, B0,B1   # the first rank\r\n"
      "# the second one\r\n"
      " ,F0,B0,F1,B1,,\r\n"
      " \r\n"
      "\r\n";
  CHECK(read_schedule_csv(text, "1f1b").ranks ==
        make_schedule({.name = "1f1b", .stages = 2, .micro_batches = 2}).ranks);
  CHECK(read_schedule_csv("F0,B0", "x").stages == 1);
  CHECK(read_schedule_csv("# placement: vee\nF0.0,F0.1,B0.1,B0.0", "x").placement ==
        Placement::vee);
  CHECK(read_schedule_csv("#placement:loop\nF0,B0", "x").placement == Placement::loop);
  CHECK(read_schedule_csv("\xef\xbb\xbf# placement: vee\nF0.0,F0.1,B0.1,B0.0", "x").placement ==
        Placement::vee);  // as editors of other systems begin a file
  // A backward pass may be whole in one place and split in another.
  CHECK(read_schedule_csv("F0,F1,I0,B1,W0", "x").splits_backward());
}

TEST_CASE("what cannot be read is told by line and column", "[schedule_csv]") {
  CHECK_THAT(refusal("F0,B0\nF0,X0\n"), ContainsSubstring("line 2, column 4: 'X0' is no action"));
  for (const std::string cell : {"F", "F.1", "F1.", "F-1", "F1.-1", "F1x", "f1", "F 1", "F1.1.1",
                                 "F99999999999", "F1.4096", "F+1", "F1048576"}) {
    CAPTURE(cell);
    CHECK_THAT(refusal("# x\nF0, " + cell), ContainsSubstring("line 2, column 5: '" + cell + "'"));
  }
  CHECK_THAT(refusal("# placement: spiral\nF0,B0"),
             ContainsSubstring("line 1, column 1: placement 'spiral'"));
  CHECK_THAT(refusal(""), ContainsSubstring("has no actions"));
  CHECK_THAT(refusal("# nothing\n\n"), ContainsSubstring("has no actions"));
  CHECK_THAT(refusal(",,\n,,"), ContainsSubstring("has no actions"));
  CHECK_THAT(refusal("F0,B0\n,,"), ContainsSubstring("line 2 (rank 1) has 0 actions"));
}

TEST_CASE("bytes that are no text do not reach the terminal", "[schedule_csv]") {
  CHECK_THAT(refusal(std::string("F0,B\0", 5)),
             ContainsSubstring("line 1, column 4: 'B\\u0000' is no action"));
  CHECK_THAT(refusal("F0,B\x1b[2J\xff"), ContainsSubstring("'B\\u001b[2J\\xff' is no action"));
  CHECK_THAT(refusal("# placement: v\x07\xc3(e\nF0,B0"),
             ContainsSubstring("placement 'v\\u0007\\xc3(e' is not known"));
}

TEST_CASE("an empty line between ranks is not taken for one or none", "[schedule_csv]") {
  CHECK_THAT(refusal("F0,B0\n\nF0,B0\n"), ContainsSubstring("line 2 is empty"));
  CHECK_THAT(refusal("\nF0,B0\n# x\n \n\nF0,B0\n\n"), ContainsSubstring("line 4 is empty"));
}

TEST_CASE("a schedule for another run is refused with what would fit", "[schedule_csv]") {
  const std::string text = "F0,F1,B0,B1\nF0,B0,F1,B1\n";
  CHECK_THAT(refusal(text, 3), ContainsSubstring("set mesh.pp to 2"));
  CHECK_THAT(
      refusal(text, 2, 3),
      ContainsSubstring("is for 2 micro-batches (its last is that of F1 at line 1, column 4)") &&
          ContainsSubstring("but a step has 3 (train.global_batch"));
  CHECK_THAT(refusal("# placement: vee\nF0,B0"),
             ContainsSubstring("has 1 chunk (the last is that of F0 at line 2, column 1)"));
  // One large number must not make large tables.
  CHECK_THAT(refusal("F0,F1000000,B0"), ContainsSubstring("line 1 (rank 0) has 3 actions"));
  CHECK_THAT(refusal("F0.1000,B0.1000,F0.0,B0.0"), ContainsSubstring("are 2002"));
}

TEST_CASE("a mistyped micro-batch or chunk is named, wherever the file falls short of it",
          "[schedule_csv]") {
  const std::string wrong_micro_batch = "F0,F1,B0,B1\nF0,B0,F11,B1\n";
  const std::string cell = "the last micro-batch is that of F11 at line 2, column 7";
  CHECK_THAT(refusal(wrong_micro_batch),
             ContainsSubstring("line 1 (rank 0)") && ContainsSubstring(cell));
  CHECK_THAT(refusal(wrong_micro_batch, 2, 2),
             ContainsSubstring("(its last is that of F11 at line 2, column 7)"));
  CHECK_THAT(refusal("F0.0,F0.1,B0.1,B0.0\nF0.0, F0.4,B0.1,B0.0\n"),
             ContainsSubstring("the last chunk that of F0.4 at line 2, column 7"));
  CHECK_THAT(
      refusal("F0,F1,B0,B1\nF0.1,F1,B0,B1\n"),
      ContainsSubstring("line 1 (rank 0) does nothing with chunk 1 (the last chunk is that of "
                        "F0.1 at line 2, column 1)"));
}

TEST_CASE("a schedule that is wrong is told by line and column, and what to do", "[schedule_csv]") {
  CHECK(refusal("# x\nF0,F1,B0,B1\n# y\nF0,I0,W0,F1") ==
        "mesh.schedule: my.csv is wrong: line 4 (rank 1) has no B1: the backward of micro-batch 1 "
        "is missing; add it");
  CHECK(refusal("F0,F1,B0,B1\nB0,F0,F1,B1") ==
        "mesh.schedule: my.csv is wrong: line 2, column 1 (B0) comes before its forward; move it "
        "after that");
  CHECK_THAT(refusal("F0,,F0, B0,B0"),
             ContainsSubstring("line 1, column 5 (F0) is done twice; remove one of them"));
  CHECK_THAT(refusal("F0,W0,I0"),
             ContainsSubstring("line 1, column 4 (W0) comes before the input half"));
  CHECK_THAT(refusal("F0,F1,B0,B1\nF1,F0,B0,B1"),
             ContainsSubstring("cannot run: what line 1, column 1 (F0) sends is met by what line "
                               "2, column 1 (F1) receives: sends and receives cross") &&
                 ContainsSubstring("give one rank the order of the other"));
  CHECK_THAT(refusal("F0,F1,B0,B1\nF0,F1,B1,B0"),
             ContainsSubstring("what line 2, column 7 (B1) sends is met by what line 1, column 7 "
                               "(B0) receives: sends and receives cross"));
  CHECK(refusal("F0,B0,F1,B1\nF0,F1,B0,B1") ==
        "mesh.schedule: my.csv cannot run: deadlock: line 1, column 4 (B0) waits for what line 2, "
        "column 7 (B0) sends; line 2, column 4 (F1) waits for what line 1, column 7 (F1) sends (no "
        "rank can go on); let one of them do earlier what the other waits for");
  CHECK_THAT(refusal("# placement: vee\nF0.1,F0.0,B0.1,B0.0"),
             ContainsSubstring("line 2, column 1 (F0.1) comes before the forward of the chunk "
                               "before it, which lies on the same rank; move it after that"));
}

TEST_CASE("damaged text is refused or read, and nothing else", "[schedule_csv]") {
  const std::string whole =
      schedule_csv(make_schedule({.name = "zb-v", .stages = 2, .micro_batches = 3}));
  constexpr std::string_view bytes = "FBIW0129.,#-\n\r \xff";
  std::minstd_rand random(7);  // the same damage every time
  int read = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (std::size_t damage = 0; damage <= random() % 3; ++damage) {
      const std::size_t at = random() % text.size();
      const char byte = bytes[random() % bytes.size()];
      random() % 3 == 0 ? text.insert(at, 1, byte) : text.replace(at, 1, random() % 2, byte);
    }
    try {
      const Schedule schedule = read_schedule_csv(text, "damaged.csv");
      CHECK_FALSE(check_schedule(schedule));
      ++read;
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
    }
  }
  CHECK(read > 300);  // damaged comments
  CHECK(read < 2700);
}

}  // namespace
}  // namespace fourfold::schedule
