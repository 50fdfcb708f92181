// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/token_file_writer.hpp>
#include <fourfold/train/same_tokens.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

/// Files of these numbers of tokens, each `first`, `first` + 1, ...; as one node has them.
std::vector<std::string> stage(const fs::path& node, const std::vector<int>& sizes,
                               std::int32_t first) {
  std::vector<std::string> files;
  fs::create_directories(node);
  for (const int size : sizes) {
    const fs::path name = node / ("part-" + std::to_string(files.size()));
    io::TokenFileWriter writer(name, io::TokenType::u16);
    std::vector<std::int32_t> tokens;
    for (int i = 0; i < size; ++i) {
      tokens.push_back((first + i) % 1000);
    }
    writer.add_document(tokens);
    writer.publish();
    files.push_back(name.string());
  }
  return files;
}

/// What each rank is told whose files are these.
std::vector<std::string> complaints(const std::vector<std::vector<std::string>>& files_of_ranks) {
  std::vector<std::string> told(files_of_ranks.size());
  comm::run_ranks(static_cast<int>(files_of_ranks.size()), [&](comm::Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    const data::TokenDataset dataset(files_of_ranks[rank], {.context = 4, .vocab = 1000});
    try {
      train::require_same_tokens(dataset, "data.train", world);
    } catch (const UserError& error) {
      told[rank] = error.code() == ExitCode::config ? error.what() : "another code";
    }
  });
  return told;
}

void set_time(const std::string& file, std::chrono::hours ago) {
  fs::last_write_time(file + ".bin", fs::file_time_type::clock::now() - ago);
}

}  // namespace

TEST_CASE("ranks that read one file, or copies of it, go on", "[same_tokens]") {
  const ScratchFolder scratch;
  const auto shared = stage(scratch / "shared", {3000, 5}, 0);
  CHECK(complaints({shared}) == std::vector<std::string>(1));
  CHECK(complaints({shared, shared, shared}) == std::vector<std::string>(3));
  const auto copy = stage(scratch / "copy", {3000, 5}, 0);
  set_time(copy[0], std::chrono::hours(5));
  CHECK(complaints({shared, copy, shared}) == std::vector<std::string>(3));
}

TEST_CASE("ranks that read other tokens under one name are refused, all of them", "[same_tokens]") {
  const ScratchFolder scratch;
  const auto shared = stage(scratch / "shared", {3000, 4000}, 0);
  for (const auto& [sizes, first] :
       {std::pair(std::vector{3000, 4000}, 7), std::pair(std::vector{3000, 4001}, 0),
        std::pair(std::vector{2999, 4000}, 0), std::pair(std::vector{3000}, 0)}) {
    const auto other = stage(scratch / "other", sizes, first);
    set_time(other[0], std::chrono::hours(1));
    for (const std::string& told : complaints({shared, shared, other})) {
      CHECK_THAT(told, ContainsSubstring("data.train: rank 2 reads other tokens than rank 0"));
      CHECK_THAT(told, ContainsSubstring(sizes.size() == 1  ? "1 files here and 2 on rank 0"
                                         : sizes[1] == 4001 ? "other/part-1"
                                                            : "other/part-0"));
    }
  }
}

TEST_CASE("one token in the middle is seen where the record tells all", "[same_tokens]") {
  CHECK(train::can_be_same_tokens("aa:-", "aa:bb"));
  CHECK(train::can_be_same_tokens("aa:bb", "aa:bb"));
  CHECK_FALSE(train::can_be_same_tokens("aa:cc", "aa:bb"));
  CHECK_FALSE(train::can_be_same_tokens("aa:bb", "ab:bb"));
}
