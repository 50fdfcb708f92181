// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/train/matmul_tuning_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using kernels::MatmulTuning;
using train::LibraryTuning;

namespace {

LibraryTuning two() {
  return {.library = "GPU \"X\", cuBLASLt 13.0.2",
          .choices = {{"bf16>f32 768x3072x65536", "66 tile 20", 12.5, 13.25},
                      {"f32>f32 1x1x1", "apart", 1, 1}}};
}

}  // namespace

TEST_CASE("choices of products come back from their JSON", "[matmul_tuning]") {
  CHECK(train::choices_from_json(train::to_json(two())) == two());
  CHECK(train::choices_from_json(train::to_json({})) == LibraryTuning{});
  LibraryTuning refused = two();  // the first way was: it has no time
  refused.choices[0].default_us = std::numeric_limits<double>::infinity();
  const auto read = train::choices_from_json(train::to_json(refused));
  REQUIRE(read);
  CHECK(read->choices[0].default_us == 0);
  const std::string text = train::to_json({.library = "\xff", .choices = {}});
  CHECK(train::choices_from_json(text));  // what is no UTF-8 is written all the same
}

TEST_CASE("what are no choices of products is told", "[matmul_tuning]") {
  const std::string good = train::to_json(two());
  REQUIRE(train::choices_from_json(good));
  const auto with = [&](const std::string& what, const std::string& instead) {
    std::string text = good;
    text.replace(text.find(what), what.size(), instead);
    return text;
  };
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("7"), std::string("{\"choices\": []}"),
        std::string("{"), std::string(100'000, '['), good.substr(0, good.size() / 2),
        with("choices 1", "choices 2"), with("\"library\"", "\"Library\""), with("12.5", "-1"),
        with("12.5", "1e999"), with("12.5", "\"12.5\""), with("12.5", "null"),
        with("\"66 tile 20\"", "66"), with("\"66 tile 20\"", "\"" + std::string(2000, 'x') + "\""),
        with("\"product\"", "\"produce\""), with("\"choices\": [", "\"choices\": [7,")}) {
    CAPTURE(text.substr(0, 300));
    CHECK_FALSE(train::choices_from_json(text));
  }
}

TEST_CASE("choices of one library are put together, the first ones first", "[matmul_tuning]") {
  const std::vector<LibraryTuning> all{
      {"here", {{"c", "1", 1, 1}, {"a", "1", 1, 1}}},
      {"elsewhere", {{"b", "2", 2, 2}}},
      {"here", {{"a", "3", 3, 3}, {"d", "3", 3, 3}}},
  };
  const LibraryTuning expected{"here", {{"a", "1", 1, 1}, {"c", "1", 1, 1}, {"d", "3", 3, 3}}};
  CHECK(train::merged(all) == expected);
}

TEST_CASE("files of choices are written whole and read with care", "[matmul_tuning]") {
  const harness::ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "choices.json";
  CHECK_FALSE(train::read_matmul_tuning(path));
  train::write_matmul_tuning(path, two());
  CHECK(train::read_matmul_tuning(path) == two());
  const auto written = std::filesystem::last_write_time(path);
  train::write_matmul_tuning(path, two());
  CHECK(std::filesystem::last_write_time(path) == written);
  std::ofstream(path) << "[train]\nsteps = 7\n";
  CHECK_THROWS_WITH(train::read_matmul_tuning(path),
                    ContainsSubstring("train.matmul_tuning_file = \"" + path.string()) &&
                        ContainsSubstring("none that fourfold has written"));
  CHECK_THROWS_WITH(train::read_matmul_tuning(folder.path()),
                    ContainsSubstring("no regular file that can be read"));
  CHECK_THROWS_AS(train::write_matmul_tuning(folder.path() / "no" / "such", two()), UserError);
}

TEST_CASE("where each product is made in one way, the file is neither read nor written",
          "[matmul_tuning]") {
  if (!kernels::matmul_library().empty()) {
    SKIP("this device's library has ways to choose from");
  }
  const harness::ScratchFolder folder;
  const std::filesystem::path path = folder.path() / "notes.txt";
  std::ofstream(path) << "mine";
  runfile::RunConfig config;
  config.train.matmul_tuning_file = path.string();
  comm::run_ranks(2, [&](comm::Communicator& world) {
    train::MatmulTuningFile choices(config, world);
    choices.write();
  });
  CHECK(std::filesystem::file_size(path) == 4);
}
