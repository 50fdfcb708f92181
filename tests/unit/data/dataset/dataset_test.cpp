// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/io/token_file_writer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <numeric>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::data::ignored_target;
using fourfold::data::TokenDataset;
using fourfold::harness::ScratchFolder;

namespace {

using Tokens = std::vector<std::int32_t>;

/// A pair of files with the tokens first, first + 1, ...
std::string counting_file(const ScratchFolder& folder, const std::string& name, std::int32_t first,
                          std::int64_t count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), first);
  fourfold::io::TokenFileWriter writer(folder / name, fourfold::io::TokenType::u16);
  writer.add_document(tokens);
  writer.publish();
  return (folder / (name + ".bin")).string();
}

struct Sample {
  Tokens tokens;
  Tokens targets;
  std::int64_t learned;
};

Sample sample_of(const TokenDataset& dataset, std::int64_t number) {
  const auto context = static_cast<std::size_t>(dataset.context());
  Sample sample{Tokens(context, -7), Tokens(context, -7), 0};
  sample.learned = dataset.fill(number, sample.tokens, sample.targets);
  return sample;
}

TokenDataset sequential(const std::vector<std::string>& files, std::int64_t context,
                        std::int64_t vocab = 65536) {
  return TokenDataset(
      files, {.context = context, .vocab = vocab, .order = TokenDataset::Order::sequential});
}

std::string error_of(ExitCode code, auto&& body) {
  try {
    body();
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("samples are windows of the stream, targets one later, the last one padded",
          "[dataset]") {
  const ScratchFolder folder;
  const TokenDataset dataset = sequential({counting_file(folder, "a", 100, 11)}, 4);
  CHECK(dataset.tokens() == 11);
  REQUIRE(dataset.samples() == 3);
  CHECK(sample_of(dataset, 0).tokens == Tokens{100, 101, 102, 103});
  CHECK(sample_of(dataset, 0).targets == Tokens{101, 102, 103, 104});
  CHECK(sample_of(dataset, 0).learned == 4);
  const Sample last = sample_of(dataset, 2);
  CHECK(last.tokens == Tokens{108, 109, 0, 0});
  CHECK(last.targets == Tokens{109, 110, ignored_target, ignored_target});
  CHECK(last.learned == 2);
  CHECK(sample_of(dataset, 5).tokens == last.tokens);  // the next epoch
}

TEST_CASE("a stream of one whole number of samples has no ragged one", "[dataset]") {
  const ScratchFolder folder;
  const std::string file = counting_file(folder, "a", 0, 9);
  CHECK(sequential({file}, 4).samples() == 2);
  CHECK(sample_of(sequential({file}, 4), 1).targets == Tokens{5, 6, 7, 8});
  CHECK(sequential({file}, 100).samples() == 1);
  CHECK(sample_of(sequential({file}, 100), 0).learned == 8);
  CHECK(sequential({file}, 1).samples() == 8);
  CHECK(sample_of(sequential({file}, 1), 7).targets == Tokens{8});
}

TEST_CASE("files follow each other without a gap", "[dataset]") {
  const ScratchFolder folder;
  const std::vector<std::string> files{counting_file(folder, "a", 0, 5),
                                       counting_file(folder, "b", 5, 1),
                                       counting_file(folder, "c", 6, 12)};
  const std::string whole = counting_file(folder, "whole", 0, 18);
  for (const std::int64_t context : {1, 2, 3, 4, 5, 6, 7, 17, 18, 30}) {
    const TokenDataset pieces = sequential(files, context);
    const TokenDataset one = sequential({whole}, context);
    REQUIRE(pieces.samples() == one.samples());
    for (std::int64_t number = 0; number < one.samples(); ++number) {
      pieces.prefetch(number);
      CHECK(sample_of(pieces, number).tokens == sample_of(one, number).tokens);
      CHECK(sample_of(pieces, number).targets == sample_of(one, number).targets);
    }
  }
}

TEST_CASE("an epoch learns every transition once, in an order of the seed's", "[dataset]") {
  const ScratchFolder folder;
  const std::vector<std::string> files{counting_file(folder, "a", 0, 1000)};
  const TokenDataset dataset(files, {.context = 7, .vocab = 1000, .seed = 3});
  const TokenDataset other(files, {.context = 7, .vocab = 1000, .seed = 4});
  std::vector<int> learned(1000);
  int same = 0;
  for (std::int64_t number = 0; number < 2 * dataset.samples(); ++number) {
    const Sample sample = sample_of(dataset, number);
    for (std::size_t i = 0; i < sample.targets.size(); ++i) {
      if (sample.targets[i] != ignored_target) {
        CHECK(sample.targets[i] == sample.tokens[i] + 1);
        ++learned[static_cast<std::size_t>(sample.targets[i])];
      }
    }
    same += dataset.position(number) == other.position(number) ? 1 : 0;
  }
  CHECK(learned[0] == 0);
  CHECK(std::vector<int>(learned.begin() + 1, learned.end()) == std::vector<int>(999, 2));
  CHECK(same < 14);  // mean 2
}

TEST_CASE("patterns are expanded by name, pairs once", "[dataset]") {
  const ScratchFolder folder;
  for (const char* name : {"t_10", "t_2", "T_1", "v_1"}) {
    counting_file(folder, name, 0, 3);
  }
  const auto in = [&](const char* name) { return (folder / name).string(); };
  folder.write("t_2.json", "{}");
  using Names = std::vector<std::string>;
  CHECK(fourfold::data::expand_patterns(Names{in("t_*")}) == Names{in("t_10.bin"), in("t_2.bin")});
  CHECK(fourfold::data::expand_patterns(Names{in("[tT]_?.bin"), in("v_1")}) ==
        Names{in("T_1.bin"), in("t_2.bin"), in("v_1")});
  CHECK(sequential({in("t_*")}, 2).tokens() == 6);
  // A name that is there is meant, whatever it looks like.
  counting_file(folder, "t_[12]", 0, 5);
  CHECK(fourfold::data::expand_patterns(Names{in("t_[12]"), in("t_[12].bin")}) ==
        Names{in("t_[12]"), in("t_[12].bin")});
  CHECK(sequential({in("t_[12]")}, 2).tokens() == 5);
  CHECK(fourfold::data::expand_patterns(Names{in("t_[2]") + ".bin"}) == Names{in("t_2.bin")});
  CHECK(fourfold::data::expand_patterns(Names{in("[t]_2")}) == Names{in("t_2.bin")});  // a prefix
  // glob(3) reads ** as *, and would find less than is meant.
  CHECK_THROWS_AS(fourfold::data::expand_patterns(Names{in("**/t_2.bin")}), fourfold::UserError);
  CHECK_THAT(
      error_of(ExitCode::config, [&] { fourfold::data::expand_patterns(Names{in("x*.bin")}); }),
      ContainsSubstring("x*.bin: no file matches"));
  CHECK_THAT(error_of(ExitCode::config, [] { fourfold::data::expand_patterns({}); }),
             ContainsSubstring("no token files are named"));
}

TEST_CASE("what is being written is not data, whatever a pattern matches", "[dataset]") {
  const ScratchFolder folder;
  const std::string good = counting_file(folder, "a", 0, 4);
  for (const char* name : {".a.bin.tmp-0123456789abcdef", ".a.idx.tmp-0123456789abcdef",
                           ".b.bin.tmp-0123456789abcdef"}) {
    folder.write(name, "half");
  }
  using Names = std::vector<std::string>;
  const auto in = [&](const char* name) { return (folder / name).string(); };
  CHECK(fourfold::data::expand_patterns(Names{in("*"), in("a.b*")}) == Names{good, good});
  CHECK_THAT(
      error_of(ExitCode::config, [&] { fourfold::data::expand_patterns(Names{in(".*.tmp-*")}); }),
      ContainsSubstring("no file matches"));
}

TEST_CASE("too little data and tokens of another vocabulary are errors", "[dataset]") {
  const ScratchFolder folder;
  const std::string one = counting_file(folder, "one", 7, 1);
  CHECK_THAT(error_of(ExitCode::config, [&] { sequential({one}, 4); }),
             ContainsSubstring("at least 2"));
  const std::string file = counting_file(folder, "a", 0, 10);
  const TokenDataset dataset = sequential({one, file}, 4, 9);
  CHECK(sample_of(dataset, 0).tokens == Tokens{7, 0, 1, 2});
  CHECK_THAT(error_of(ExitCode::data_corrupt, [&] { sample_of(dataset, 2); }),
             ContainsSubstring("a.bin: token 9 (byte 18) is 9, outside the vocabulary [0, 9)"));
}
