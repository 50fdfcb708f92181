// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/prepare.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/train/first_look.hpp>
#include <fourfold/train/load_run.hpp>

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace fourfold;
using harness::ScratchFolder;

namespace {

const std::string golden = fourfold::harness::golden_folder() + "/tokenizers/";

std::vector<runfile::RunInput> inputs_of(const ScratchFolder& scratch, const std::string& more,
                                         const std::vector<std::string>& overrides = {}) {
  const auto file = scratch.write(
      "run.toml", "[data]\ntrain = [\"" + (scratch / "tokens").string() + "\"]\n" + more);
  return train::run_inputs(train::load_run(file, overrides));
}

}  // namespace

TEST_CASE("what a run reads is what a person has named", "[run_inputs]") {
  const ScratchFolder scratch;
  data::prepare(*data::open_tokenizer(golden + "llama3.json"),
                {.inputs = {scratch.write("text", "It was the best of times.\n")},
                 .output_prefix = scratch / "tokens"},
                [](const data::PrepareProgress&) {});
  CHECK(inputs_of(scratch, "").empty());  // the record names the tokenizer
  const auto named = inputs_of(scratch, "tokenizer = \"" + golden + "llama3.json\"\n");
  REQUIRE(named.size() == 1);
  CHECK(named[0].key == "data.tokenizer");
  REQUIRE(named[0].files.size() == 1);
  CHECK(named[0].files[0].path == golden + "llama3.json");
  CHECK(named[0].files[0].bytes == harness::read_bytes(golden + "llama3.json"));
  CHECK(named[0].value == golden + "llama3.json");
  // In a folder of its own, what an export reads comes with it.
  const ScratchFolder folder;
  folder.write("tokenizer.json", harness::read_bytes(golden + "llama3.json"));
  folder.write("chat_template.jinja", "{{ messages }}");
  folder.write("README.md", "not of the tokenizer");
  const auto whole = inputs_of(scratch, "tokenizer = \"" + folder.path().string() + "\"\n");
  REQUIRE(whole.size() == 1);
  REQUIRE(whole[0].files.size() == 2);
  CHECK(whole[0].files[0].path == folder / "tokenizer.json");
  CHECK(whole[0].files[1].path == folder / "chat_template.jinja");
  CHECK(whole[0].files[1].bytes == "{{ messages }}");
}

TEST_CASE("a schedule that is a file is read where it counts", "[run_inputs]") {
  const ScratchFolder scratch;
  data::prepare(*data::open_tokenizer("byte"),
                {.inputs = {scratch.write("text", "It was the best of times.\n")},
                 .output_prefix = scratch / "tokens"},
                [](const data::PrepareProgress&) {});
  const std::string csv = "0,F,0,0\n";
  const std::string schedule = "mesh.schedule=\"" + scratch.write("order.csv", csv).string() + "\"";
  CHECK(inputs_of(scratch, "tokenizer = \"byte\"\n", {schedule}).empty());  // one stage
  const auto named = inputs_of(scratch, "", {schedule, "mesh.pp=2"});
  REQUIRE(named.size() == 1);
  CHECK(named[0].key == "mesh.schedule");
  CHECK(named[0].files.at(0).bytes == csv);
  CHECK_THROWS_AS(inputs_of(scratch, "", {"mesh.schedule=\"gone.csv\"", "mesh.pp=2"}), UserError);
}
