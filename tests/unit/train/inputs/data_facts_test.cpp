// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/token_file_writer.hpp>
#include <fourfold/train/data_facts.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

using namespace fourfold;
using harness::ScratchFolder;

namespace {

std::string written(const ScratchFolder& scratch, const std::string& name,
                    const std::vector<std::int32_t>& tokens,
                    io::TokenType type = io::TokenType::u16) {
  io::TokenFileWriter writer(scratch / name, type);
  writer.add_document(tokens);
  writer.publish();
  return (scratch / name).string();
}

std::vector<std::int32_t> counted(std::size_t count) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), 0);
  for (std::int32_t& token : tokens) {
    token %= 1000;
  }
  return tokens;
}

/// The same on both ranks.
train::DataFacts facts_of(const std::vector<std::string>& files) {
  std::vector<train::DataFacts> facts(2);
  comm::run_ranks(2, [&](comm::Communicator& world) {
    const data::TokenDataset dataset(files, {.context = 4, .vocab = 1000});
    facts[static_cast<std::size_t>(world.rank())] = train::data_facts(dataset, world);
  });
  CHECK(facts[0].digests == facts[1].digests);
  CHECK(facts[0].tokenizers == facts[1].tokenizers);
  return facts[0];
}

}  // namespace

TEST_CASE("data are known by their tokens, not by how they are stored", "[data_facts]") {
  const ScratchFolder scratch;
  const auto tokens = counted(40'000);
  const auto first = facts_of({written(scratch, "a", tokens)});
  CHECK(first.token_counts == "40000");
  CHECK(facts_of({written(scratch, "b", tokens, io::TokenType::i32)}).digests == first.digests);
  for (const std::size_t place : {std::size_t{0}, std::size_t{1023}, tokens.size() - 1}) {
    auto other = tokens;
    other[place] = 999 - other[place];
    CHECK(facts_of({written(scratch, "c", other)}).digests != first.digests);
  }
  auto shifted = tokens;
  shifted.erase(shifted.begin());
  shifted.push_back(0);
  CHECK(facts_of({written(scratch, "c", shifted)}).digests != first.digests);
}

TEST_CASE("files of a few tokens, and many files, have digests", "[data_facts]") {
  const ScratchFolder scratch;
  const auto facts = facts_of({written(scratch, "a", {1}), written(scratch, "b", {2, 3})});
  CHECK(facts.token_counts == "1,2");
  CHECK(std::ranges::count(facts.digests, ',') == 1);
  std::vector<std::string> files;
  for (int i = 0; i < 70; ++i) {
    files.push_back(written(scratch, "f" + std::to_string(i), {i, i}));
  }
  CHECK(std::ranges::count(facts_of(files).digests, ',') == 69);
  CHECK(facts_of(files).tokenizers.empty());  // nothing says what made them
}
