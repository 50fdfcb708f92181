// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::UserError;
using namespace fourfold::runfile;

namespace {

const std::string data_table = "[data]\ntrain = [\"t.bin\"]\n";

/// A value of the key that is not its default.
Value other_value(const RunKey& key) {
  const Value before = key.field.get(RunConfig{});
  switch (key.field.kind) {
    case ValueKind::boolean:
      return !std::get<bool>(before);
    case ValueKind::integer:
      return std::min(std::get<std::int64_t>(before) + 7,
                      static_cast<std::int64_t>(std::min(key.maximum, 1e15)));
    case ValueKind::real:
      return key.maximum <= 1 ? 0.12345678901234567 : std::get<double>(before) + 1.0 / 3.0;
    case ValueKind::text_list:
      return std::vector<std::string>{"a b", "\"quoted\\\"", "\u00e4\n\t\x7f"};
    case ValueKind::integer_list:
      return std::vector<std::int64_t>{3, 0, 1234567890123 % 1000000};
    case ValueKind::text:
      break;
  }
  for (const std::string& choice : key.field.choices) {
    if (Value(choice) != before) {
      return choice;
    }
  }
  return std::string("a \"b\" \\ # = [c]\n\x01 \u00e9");
}

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("words that are true and false need no quotes", "[run_key]") {
  const auto graphs = [](const std::string& value) {
    return parse_run_config("[train]\ncuda_graphs = " + value + "\n" + data_table, "run.toml")
        .config.train.cuda_graphs;
  };
  CHECK(graphs("true") == CudaGraphs::always);
  CHECK(graphs("\"true\"") == CudaGraphs::always);
  CHECK(graphs("false") == CudaGraphs::never);
  CHECK(graphs("\"auto\"") == CudaGraphs::automatic);
  CHECK(parse_run_config(data_table, "run.toml", {{"train.cuda_graphs=true"}})
            .config.train.cuda_graphs == CudaGraphs::always);
  CHECK_THROWS_WITH(graphs("1"), ContainsSubstring("train.cuda_graphs = 1 is not"));
  CHECK_THROWS_WITH(parse_run_config("[train]\nprecision = true\n" + data_table, "run.toml"),
                    ContainsSubstring("train.precision = true is not"));
}

TEST_CASE("every key survives printing and parsing with another value than its default",
          "[run_key]") {
  for (const RunKey& key : run_keys()) {
    CAPTURE(key.full_name);
    RunConfig config;
    const Value value = other_value(key);
    key.field.set(config, value);
    const bool only_default_is_built =
        key.field.kind == ValueKind::integer && value == key.field.get(RunConfig{});
    CHECK((config != RunConfig{}) == !only_default_is_built);
    CHECK(key.field.get(config) == value);
    CHECK(parse_saved_config(to_toml(config), "saved") == config);
  }
}

TEST_CASE("a key may take words too many to list", "[run_key]") {
  const auto printed = [](const std::string& value) {
    const EffectiveConfig effective =
        parse_run_config(data_table, "a", std::vector<std::string>{"train.recompute=" + value});
    return print_run_config(effective);
  };
  CHECK_THAT(printed("every:3"), ContainsSubstring("recompute = \"every:3\" "));
  CHECK_THAT(printed("\"every:1\""), ContainsSubstring("recompute = \"full\" "));
  CHECK_THAT(printed("selective"), ContainsSubstring("recompute = \"selective\" "));
  CHECK_THAT(run_file_markdown(), ContainsSubstring("One of none, full, selective, every:K."));
}

TEST_CASE("keys are described completely and once", "[run_key]") {
  std::set<std::string> names;
  for (const RunKey& key : run_keys()) {
    CAPTURE(key.full_name);
    CHECK(names.insert(key.full_name).second);
    CHECK(find_run_key(key.full_name) == &key);
    CHECK(key.meaning.ends_with('.'));
    CHECK(std::ranges::count(run_tables(), key.table, &RunTable::name) == 1);
    CHECK(key.has_effect(RunConfig{}) ==
          !(key.relevance.holds && !key.relevance.holds(RunConfig{})));
  }
  for (const RunTable& table : run_tables()) {
    CHECK(std::ranges::count(run_keys(), table.name, &RunKey::table) > 0);
  }
  CHECK(find_run_key("train.") == nullptr);
}

TEST_CASE("keys are found by their last part", "[run_key]") {
  CHECK(keys_called("steps") == std::vector<std::string>{"train.steps"});
  CHECK(keys_called("dir") == std::vector<std::string>{"checkpoint.dir", "log.dir"});
  CHECK(keys_called("train.steps").empty());
  CHECK(keys_called("").empty());
}

TEST_CASE("the effective configuration prints as TOML that parses back to it", "[run_config]") {
  const EffectiveConfig effective = parse_run_config(
      "[model]\npreset = \"llama-15m\"\ndropout = 0.1\n[mesh]\ndp = \"auto\"\n[optim]\nschedule = "
      "\"wsd\"\nlr = 3e-4\n" +
          data_table,
      "run.toml", std::vector<std::string>{"train.seed=99"});
  const std::string printed = print_run_config(effective);
  CHECK(parse_run_config(printed, "printed").config == effective.config);
  CHECK(to_toml(parse_saved_config(to_toml(effective.config), "saved")) ==
        to_toml(effective.config));
  const auto line_with = [&](const std::string& start) {
    const std::size_t begin = printed.find("\n" + start) + 1;
    return printed.substr(begin, printed.find('\n', begin) - begin);
  };
  CHECK_THAT(line_with("layers"), ContainsSubstring("# preset llama-15m"));
  CHECK_THAT(line_with("dropout"),
             ContainsSubstring("= 0.1 ") && ContainsSubstring("# run.toml:3"));
  CHECK_THAT(line_with("dp "), ContainsSubstring("\"auto\"") && ContainsSubstring("# run.toml:5"));
  CHECK_THAT(line_with("lr"), ContainsSubstring("0.0003"));
  CHECK_THAT(line_with("seed"), ContainsSubstring("= 99 ") && ContainsSubstring("# --set"));
  CHECK_THAT(line_with("# decay_steps"),
             ContainsSubstring("= 1000 ") && ContainsSubstring("# from train.steps"));
  CHECK_THAT(line_with("# momentum"),
             ContainsSubstring("# default; no effect without optim.name = \"sgd\""));
}

TEST_CASE("resuming tells what changed and what that takes", "[run_config]") {
  const RunConfig before = parse_run_config(data_table, "a").config;
  const std::string saved = to_toml(before);
  const auto changes_with = [&](const std::vector<std::string>& overrides) {
    return config_difference(saved, parse_run_config(data_table, "b", overrides).config);
  };
  CHECK(changes_with({}).empty());
  CHECK(changes_with({"optim.momentum=0.1"}).empty());  // adamw reads no momentum
  CHECK(changes_with({"log.progress=none", "checkpoint.resume=never"}).empty());  // of one start

  const auto free = changes_with({"train.steps=2000", "optim.decay_steps=1000",
                                  "train.micro_batch=2", "train.recompute=every:2", "mesh.dp=2",
                                  "log.dir=elsewhere", "checkpoint.keep_last=9"});
  CHECK(std::ranges::all_of(free, [](const ConfigChange& c) { return c.rule == OnResume::free; }));
  CHECK(free.size() == 7);  // log.dir moves checkpoint.dir with it
  refuse_changes(free, {});

  // A longer run stretches a decay that follows it, and whatever follows that.
  const auto stretched = changes_with({"train.steps=2000"});
  REQUIRE(stretched.size() == 2);
  CHECK(stretched[1].str() == "optim.decay_steps: 1000 -> 2000 (follows train.steps)");
  refuse_changes(stretched, {});
  const std::vector<std::string> wsd{"optim.schedule=wsd"};
  const auto wsd_changes = config_difference(
      to_toml(parse_run_config(data_table, "a", wsd).config),
      parse_run_config(data_table, "b", std::vector<std::string>{wsd[0], "train.steps=2000"})
          .config);
  REQUIRE(wsd_changes.size() == 3);
  CHECK(wsd_changes[2].str() ==
        "optim.cooldown_steps: 100 -> 200 (follows a tenth of optim.decay_steps)");
  refuse_changes(wsd_changes, {});
  // One that somebody wrote, then or now, is a change of its own.
  for (const auto& [then, now] :
       {std::pair{"optim.decay_steps=900", "optim.decay_steps=950"},
        {"optim.decay_steps=900", "train.steps=2000"},     // not written any more
        {"train.steps=2000", "optim.decay_steps=900"}}) {  // written now
    const RunConfig saved_then =
        parse_run_config(data_table, "a", std::vector<std::string>{then}).config;
    CHECK_THROWS_WITH(
        refuse_changes(config_difference(
                           to_toml(saved_then),
                           parse_run_config(data_table, "b", std::vector<std::string>{now}).config),
                       {}),
        ContainsSubstring("(allow it with --allow-change=optim.decay_steps)"));
  }

  const auto several = changes_with({"model.layers=3", "optim.lr=0.5", "data.train=other.bin"});
  const std::vector<std::string> allowed{"optim.lr", "data.train"};
  CHECK_THROWS_WITH(refuse_changes(several, allowed),
                    ContainsSubstring("model.layers: 12 -> 3  (can never change") &&
                        !ContainsSubstring("optim.lr") && !ContainsSubstring("data.train"));
  CHECK_THROWS_WITH(refuse_changes({}, std::vector<std::string>{"optim.lrr"}),
                    ContainsSubstring("did you mean optim.lr?"));
  CHECK_THROWS_WITH(refuse_changes({}, std::vector<std::string>{"model.layers"}),
                    ContainsSubstring("only change in a new run"));
}

TEST_CASE("what others call a key is a hint at one that there is, and no key itself", "[run_key]") {
  std::set<std::string_view> hinted;
  for (const FieldName& other : all_field_names()) {
    INFO(other.name);
    CHECK(find_run_key(other.key) != nullptr);
    CHECK(std::ranges::none_of(run_keys(),
                               [&](const RunKey& key) { return key.name == other.name; }));
    hinted.insert(other.name);
  }
  CHECK(hinted.size() >= 40);
  CHECK(keys_meant_by("Tensor-Model-Parallel-Size") == std::vector<std::string>{"mesh.tp"});
  CHECK(keys_called("batch_size") ==
        std::vector<std::string>{"train.global_batch", "train.micro_batch"});
  CHECK(keys_called("lr") == std::vector<std::string>{"optim.lr"});
  CHECK(keys_called("frobnicate").empty());
}

TEST_CASE("who trains on with a printed configuration gets what is right then", "[run_config]") {
  const std::string printed = print_run_config(parse_run_config(data_table, "run.toml"));
  const RunConfig longer =
      parse_run_config(printed, "config.toml", std::vector<std::string>{"train.steps=5000"}).config;
  CHECK(longer.optim.schedule.decay_steps == 5000);
  const RunConfig elsewhere =
      parse_run_config(printed, "config.toml", std::vector<std::string>{"log.dir=b"}).config;
  CHECK(elsewhere.checkpoint.dir == "b/checkpoints");
  const RunConfig wider =
      parse_run_config(printed, "config.toml", std::vector<std::string>{"model.hidden=96"}).config;
  CHECK(wider.model.feed_forward.width == 384);
}

TEST_CASE("what cannot be read again is not written", "[run_config]") {
  const auto refusal = [](const std::string& override_text) {
    try {
      parse_run_config(data_table, "run.toml", std::vector<std::string>{override_text});
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal("log.dir=lat\xe9") ==
        "--set: \"log.dir=lat\\xe9\" is not UTF-8 (run files and checkpoints are); rename what it "
        "names, or name it by a link");
  for (const char* const text : {"data.tokenizer=\xff.json", "data.train=[\"a\", \"b\xc3\"]",
                                 "checkpoint.dir=\xed\xa0\x80", "\xe9=1", "log.dir=\xc0\xaf"}) {
    CHECK_THAT(refusal(text), ContainsSubstring("is not UTF-8"));
  }
  CHECK_THAT(refusal("log.dir=\"a\\u0000b\""), ContainsSubstring("log.dir holds a NUL character"));
  for (const char* const text :
       {"log.dir=~/runs/x", "checkpoint.dir='~'", "checkpoint.node_local_dir=~/x",
        "checkpoint.resume=~/x", "data.train=[\"a\", \"~/b\"]", "data.validation=~/b",
        "data.tokenizer=~/x.json", "mesh.schedule=~/x.csv", "train.matmul_tuning_file=~/x",
        "offload.optimizer=nvme:~/x"}) {
    const std::string assignment = text;
    CHECK_THAT(refusal(text),
               ContainsSubstring("--set: " + assignment.substr(0, assignment.find('=')) +
                                 " begins with ~"));
  }
  CHECK(refusal("log.dir=~x").empty());
  CHECK(parse_saved_config("[log]\ndir = \"~/x\"\n", "saved").log.dir == "~/x");
  CHECK(refusal("log.dir=run-\xc3\xa9-\xf0\x9f\x8c\x8d").empty());
  RunConfig config = parse_run_config(data_table, "run.toml").config;
  config.data.tokenizer = "lat\xe9.json";  // set by a program
  CHECK_THROWS_WITH(to_toml(config), ContainsSubstring("lat\\xe9.json"));
  // The name of a run file may hold any bytes, and stands in a comment.
  const EffectiveConfig effective = parse_run_config(data_table, "lat\xe9/run.toml");
  CHECK(parse_run_config(print_run_config(effective), "printed").config == effective.config);
}

TEST_CASE("a saved configuration may have keys that are gone, and none that never were",
          "[run_config]") {
  CHECK(parse_saved_config("[train]\nsteps = 5\n[optim]\npost_validation = true\n", "saved")
            .train.steps == 5);
  CHECK_THROWS_WITH(parse_saved_config("[train]\nsteps = 5\nfuture = 1\n", "saved"),
                    ContainsSubstring("saved:3:1: unknown key \"future\" in [train]") &&
                        ContainsSubstring("read it with that version"));
  CHECK_THROWS_WITH(parse_saved_config("[train]\nsteps = 5\n[future]\nx = 2\n", "saved"),
                    ContainsSubstring("saved:3:2: unknown table [future]") &&
                        ContainsSubstring("read it with that version"));
}

TEST_CASE("a saved configuration keeps the values of keys that have other names now",
          "[run_config]") {
  const RunConfig saved = parse_saved_config(
      "[train]\nproduct_choices = \"ways.json\"\n[checkpoint]\nfast_dir = \"/nvme/run\"\n"
      "fast_every_steps = 7\nfast_keep_last = 3\nfast_partner = false\n"
      "[watch]\nenabled = false\ndeadline_s = 71\nsilence_s = 72\nstart_s = 73\n",
      "saved");
  CHECK(saved.train.matmul_tuning_file == "ways.json");
  CHECK(saved.checkpoint.node_local_dir == "/nvme/run");
  CHECK(saved.checkpoint.node_local_every_steps == 7);
  CHECK(saved.checkpoint.node_local_keep_last == 3);
  CHECK_FALSE(saved.checkpoint.node_local_partner);
  CHECK_FALSE(saved.watchdog.enabled);
  CHECK(saved.watchdog.deadline_s == 71);
  CHECK(saved.watchdog.silence_s == 72);
  CHECK(saved.watchdog.start_s == 73);
  CHECK_THROWS_WITH(
      parse_saved_config("[watch]\nfuture = 1\n", "saved"),
      ContainsSubstring("saved:2:1: unknown key \"future\" in [watch]; known here: enabled, "));
}

TEST_CASE("a run file is told the name of a key now", "[run_config]") {
  CHECK_THROWS_WITH(
      parse_run_config("[checkpoint]\nfast_dir = \"/nvme\"\n" + data_table, "run.toml"),
      ContainsSubstring("run.toml:2:1: the key \"fast_dir\" of [checkpoint] is called "
                        "checkpoint.node_local_dir"));
  CHECK_THROWS_WITH(parse_run_config("[watch]\nenabled = false\n" + data_table, "run.toml"),
                    ContainsSubstring("run.toml:1:2: the table [watch] is called [watchdog] now"));
  CHECK_THROWS_WITH(
      parse_run_config(data_table, "run.toml", std::vector<std::string>{"watch.enabled=false"}),
      ContainsSubstring("the table [watch] is called [watchdog] now"));
}

TEST_CASE("a run file with a key that is gone is told so", "[run_config]") {
  CHECK_THROWS_WITH(
      parse_run_config("[optim]\npost_validation = true\n" + data_table, "run.toml"),
      ContainsSubstring("run.toml:2:1: the key \"post_validation\" of [optim] is gone") &&
          ContainsSubstring("leave it out"));
}

TEST_CASE("mutated run files are read or refused, never more", "[run_config]") {
  const EffectiveConfig effective =
      parse_run_config("[model]\npreset = \"gpt2-124m\"\n" + data_table, "run.toml");
  const std::string good = print_run_config(effective);
  const std::string spice = "\"'[]{}=#.,\n\\\0\x80\xff+-_einf09:TZ";
  int accepted = 0;
  for (std::uint64_t round = 0; round < 3000; ++round) {
    std::string text = good;
    const auto draw = [&, count = std::uint64_t{0}]() mutable {
      return fourfold::philox(fourfold::philox_key(round, fourfold::RandomUse::test), count++)
          .word[0];
    };
    auto next = draw;
    for (std::uint32_t edits = next() % 3 + 1; edits > 0; --edits) {
      const std::size_t at = next() % text.size();
      switch (next() % 4) {
        case 0:
          text[at] = spice[next() % spice.size()];
          break;
        case 1:
          text.insert(at, 1, spice[next() % spice.size()]);
          break;
        case 2:
          text.erase(at, next() % 20);
          break;
        default:
          text.insert(at, text.substr(next() % text.size(), next() % 30));
          break;
      }
    }
    try {
      const RunConfig config = parse_run_config(text, "mutated").config;
      REQUIRE(parse_run_config(to_toml(config), "again").config == config);
      ++accepted;
    } catch (const fourfold::UserError& error) {
      REQUIRE(error.code() == fourfold::ExitCode::config);
    }
  }
  CHECK(accepted > 100);  // comments and white space can take a lot
}

TEST_CASE("docs/run-file.md is what the table of keys says", "[run_key][docs]") {
  const std::string path = fourfold::harness::source_folder() + "/docs/run-file.md";
  const std::string begin_mark =
      "<!-- keys: written by `FOURFOLD_UPDATE_DOCS=1 runfile_test \"[docs]\"` -->\n";
  std::string text = file_text(path);
  const std::size_t begin = text.find(begin_mark);
  REQUIRE(begin != std::string::npos);
  const std::string expected = text.substr(0, begin + begin_mark.size()) + run_file_markdown();
  if (std::getenv("FOURFOLD_UPDATE_DOCS") != nullptr) {
    std::ofstream(path, std::ios::binary) << expected;
  }
  CHECK(file_text(path) == expected);
}

TEST_CASE("help names every key", "[run_key]") {
  const std::string help = run_file_help();
  for (const RunKey& key : run_keys()) {
    CHECK_THAT(help, ContainsSubstring("  " + key.name + " = "));
  }
}

TEST_CASE("help shows one table or one key", "[run_key]") {
  const std::string whole = run_file_help();
  for (const RunTable& table : run_tables()) {
    const std::string part = run_file_help(table.name);
    CHECK(part == run_file_help("[" + table.name + "]"));
    CHECK(part.starts_with("[" + table.name + "]\n"));
    CHECK_THAT(whole, ContainsSubstring(part));
  }
  CHECK(run_file_help("optim.lr").starts_with("[optim]\n  lr = 0.0006\n      "));
  CHECK(run_file_help("learning_rate") == run_file_help("optim.lr"));
  CHECK_THAT(run_file_help("dir"), ContainsSubstring("[checkpoint]\n  dir = ") &&
                                       ContainsSubstring("\n\n[log]\n  dir = "));
  CHECK(run_file_help("frobnicate").empty());
  CHECK(run_file_help("").empty());
}
