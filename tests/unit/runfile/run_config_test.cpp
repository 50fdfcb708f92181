// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::UserError;
using namespace fourfold::runfile;

namespace {

const std::string data_table = "[data]\ntrain = [\"t.bin\"]\n";

EffectiveConfig parse(const std::string& text, const std::vector<std::string>& overrides = {}) {
  return parse_run_config(text, "run.toml", overrides);
}

/// The message of the UserError, which must carry the exit code of a wrong configuration.
std::string refusal(const std::string& text, const std::vector<std::string>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a small run file fills in what it does not say", "[run_config]") {
  const EffectiveConfig effective = parse(
      "[model]\nfamily = \"llama\"\nlayers = 2\nhidden = 64\nheads = 4\nkv_heads = 2\nvocab = 256\n"
      "[train]\nsteps = 200\nprecision = \"bf16\"\n[optim]\nlr = 1\n[log]\ndir = \"runs/a\"\n" +
      data_table);
  const RunConfig& config = effective.config;
  CHECK(config.model.layers == 2);
  CHECK(config.model.attention.head_dim == 16);
  CHECK(config.model.feed_forward.width == 192);
  CHECK(config.train.precision == fourfold::DType::bf16);
  CHECK(config.optim.schedule.lr == 1.0);
  CHECK(config.optim.schedule.decay_steps == 200);
  CHECK(config.checkpoint.dir == "runs/a/checkpoints");
  CHECK(effective.warnings.empty());
  CHECK(effective.origins.at("train.steps").str() == "run.toml:9");
  CHECK(effective.origins.at("train.steps").where() == "run.toml:9:1");
  CHECK(effective.origins.at("optim.decay_steps").str() == "from train.steps");
  CHECK_FALSE(effective.origins.contains("train.seed"));
}

TEST_CASE("key/value heads follow the heads of a preset that has as many", "[run_config]") {
  const EffectiveConfig own = parse("[model]\npreset = \"gpt2-124m\"\nheads = 16\n" + data_table);
  CHECK(own.config.model.attention.kv_heads == 16);
  CHECK(own.origins.at("model.kv_heads").str() == "from model.heads");
  CHECK(parse(data_table, {"model.preset=gpt2-124m", "model.heads=16", "model.kv_heads=4"})
            .config.model.attention.kv_heads == 4);
  CHECK(parse(data_table, {"model.preset=llama-3-8b", "model.heads=16"})
            .config.model.attention.kv_heads == 8);  // grouped: its own
  CHECK(parse(data_table, {"model.preset=gpt2-124m"}).origins.at("model.kv_heads").str() ==
        "preset gpt2-124m");
}

TEST_CASE("preset, file and --set lie over each other in this order", "[run_config]") {
  const std::string text =
      "[model]\ncontext = 128\npreset = \"gpt2-350m\"\ndropout = 0.1\n" + data_table;
  const EffectiveConfig effective = parse(text, {"model.dropout=0.2", "train.steps = 7"});
  CHECK(effective.config.model.layers == 24);
  CHECK(effective.config.model.context == 128);
  CHECK(effective.config.model.dropout == 0.2);
  CHECK(effective.config.train.steps == 7);
  CHECK(effective.origins.at("model.layers").str() == "preset gpt2-350m");
  CHECK(effective.origins.at("model.context").str() == "run.toml:2");
  CHECK(effective.origins.at("model.dropout").str() == "--set");
  CHECK(family_of(parse(data_table, {"model.preset=llama-15m"}).config.model) ==
        fourfold::model::Family::llama);
}

TEST_CASE("--set takes TOML values, and words without quotes", "[run_config]") {
  CHECK(parse(data_table, {"optim.name=sgd"}).config.optim.name == OptimizerKind::sgd);
  CHECK(parse(data_table, {"optim.name=\"sgd\""}).config.optim.name == OptimizerKind::sgd);
  CHECK(parse(data_table, {"mesh.dp=auto"}).config.mesh.shape.dp == 0);
  CHECK(parse(data_table, {"mesh.dp=2"}).config.mesh.shape.dp == 2);
  CHECK(parse("", {"data.train=a.bin"}).config.data.train == std::vector<std::string>{"a.bin"});
  CHECK(parse("", {"data.train=[\"a\", 'b']"}).config.data.train ==
        std::vector<std::string>{"a", "b"});
  CHECK(parse(data_table, {"log.dir=a=b"}).config.log.dir == "a=b");
  CHECK(parse(data_table, {"log.tensorboard=false"}).config.log.tensorboard == false);
}

TEST_CASE("log.dir is found whatever is wrong with the rest", "[run_config]") {
  const fourfold::harness::ScratchFolder dir;
  const auto file = dir / "run.toml";
  const auto found = [&](const char* toml, const std::vector<std::string>& overrides = {}) {
    fourfold::harness::write_bytes(file, toml);
    CHECK_THROWS_AS(load_run_config(file, overrides), fourfold::UserError);
    return log_dir_of(file, overrides);
  };
  CHECK(found("[train]\nsteps = \"many\"\n") == "run");
  CHECK(found("[train]\nstepz = 3\n[log]\ndir = \"here\"\n") == "here");
  CHECK(found("[log]\ndir = 3\n") == "run");
  CHECK(found("[log]\ndir = \"here\"\n", {"log.dir=there", "what", "log.dir", "log.x=1"}) ==
        "there");
  CHECK(found("", {" log.dir = \"quoted\" ", "log.dir=\"half"}) == "quoted");
  fourfold::harness::write_bytes(file, "[log\n");
  CHECK_THROWS_AS(log_dir_of(file), fourfold::UserError);
  CHECK_THROWS_AS(log_dir_of(dir / "absent.toml"), fourfold::UserError);
}

TEST_CASE("every wrong line is named, with its place and a suggestion", "[run_config]") {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::vector<Case> cases{
      {"[model]\nlayrs = 2\n",
       "run.toml:2:1: unknown key \"layrs\" in [model]; did you mean \"layers\"?"},
      {"[model]\nseed = 2\n",
       "run.toml:2:1: unknown key \"seed\" in [model]; it belongs in [train]"},
      {"[log]\nfrobnicate = 2\n",
       "run.toml:2:1: unknown key \"frobnicate\" in [log]; known here: dir, every_steps, "
       "tensorboard, report, trace, trace_steps, peak_tflops, progress"},
      {"[modle]\n", "run.toml:1:2: unknown table [modle]; did you mean [model]?"},
      {"[optimizer]\n", "run.toml:1:2: unknown table [optimizer]; did you mean [optim]?"},
      {"[train]\neval_every = 5\n",
       "run.toml:2:1: unknown key \"eval_every\" in [train]; did you mean \"eval_every_steps\"?"},
      {"[optim]\nlearning_rate = 1e-3\n",
       "run.toml:2:1: unknown key \"learning_rate\" in [optim]; did you mean optim.lr?"},
      {"[train]\nseq_length = 8\n",
       "run.toml:2:1: unknown key \"seq_length\" in [train]; did you mean model.context?"},
      {"batch_size = 12\n",
       "run.toml:1:1: \"batch_size\" stands outside a table; did you mean train.global_batch or "
       "train.micro_batch?"},
      {"layers = 2\n", "run.toml:1:1: \"layers\" stands outside a table; it belongs in [model]"},
      {"model = 2\n", "run.toml:1:1: model is a table; write [model] above its keys"},
      {"[train]\nsteps = \"many\"\n",
       "run.toml:2:1: train.steps = \"many\" is not an integer of at least 0"},
      {"[train]\nsteps = 1e3\n",
       "run.toml:2:1: train.steps = 1000.0 is not an integer of at least 0; write 1000"},
      {"[train]\nsteps = -1\n", "run.toml:2:1: train.steps = -1 is not an integer of at least 0"},
      {"[train]\nmicro_batch = 0\n",
       "run.toml:2:1: train.micro_batch = 0 is not an integer of at least 1 and at most "
       "1000000000"},
      {"[train]\nprecision = \"bf61\"\n",
       "run.toml:2:1: train.precision = \"bf61\" is not one of \"f32\", \"bf16\", \"f16\"; did "
       "you mean \"bf16\"?"},
      {"[train]\nprecision = \"f16\"\nloss_scale = 0\n",
       "run.toml:3:1: train.loss_scale = 0 is not an integer of at least 1 and at most "
       "1099511627776"},
      {"[train]\nprecision = \"f16\"\nloss_scale = 1000\n" + data_table,
       "run.toml:3:1: train.loss_scale = 1000 is no power of two (scaling by others rounds); set "
       "it "
       "to 512 or 1024"},
      {"[train]\nprecision = \"f16\"\nloss_scale_initial = 3\n" + data_table,
       "run.toml:3:1: train.loss_scale_initial = 3 is no power of two"},
      {"[train]\nprecision = \"f16\"\nloss_scale_min = 12\n" + data_table,
       "run.toml:3:1: train.loss_scale_min = 12 is no power of two"},
      {"[train]\nprecision = \"f16\"\nloss_scale_initial = 8\nloss_scale_min = 16\n" + data_table,
       "run.toml:3:1: train.loss_scale_initial = 8 is below train.loss_scale_min = 16"},
      {"[train]\nrecompute = \"ful\"\n",
       "run.toml:2:1: train.recompute = \"ful\" is not one of \"none\", \"full\", \"selective\", "
       "or "
       "\"every:K\" with K of at least 1; did you mean \"full\"?"},
      {"[train]\nrecompute = \"every:0\"\n",
       "run.toml:2:1: train.recompute = \"every:0\" is not one of \"none\", "},
      {"[train]\nrecompute = \"every:x\"\n",
       "run.toml:2:1: train.recompute = \"every:x\" is not one of \"none\", "},
      {"[train]\nrecompute = true\n",
       "run.toml:2:1: train.recompute = true is not one of \"none\", "},
      {"[optim]\nlr = nan\n", "run.toml:2:1: optim.lr = nan is not a number of at least 0"},
      {"[optim]\nlr = true\n", "run.toml:2:1: optim.lr = true is not a number of at least 0"},
      {"[optim]\nbeta1 = 1.0\n",
       "run.toml:2:1: optim.beta1 = 1.0 is not a number of at least 0 and at most 0.9999999"},
      {"[optim]\nepsilon = 0\n", "run.toml:2:1: optim.epsilon = 0 is not a number above 0"},
      {"[data]\ntrain = \"a.bin\"\n",
       "run.toml:2:1: data.train = \"a.bin\" is not a list of strings; write [\"a.bin\"]"},
      {"[data]\ntrain = [ 3 ]\n", "run.toml:2:1: data.train = [ 3 ] is not a list of strings"},
      {"[log]\ntensorboard = 1\n", "run.toml:2:1: log.tensorboard = 1 is not true or false"},
      {"[mesh]\ndp = \"all\"\n",
       "run.toml:2:1: mesh.dp = \"all\" is not an integer of at least 1 and at most 1048576, or "
       "\"auto\""},
      {"[mesh]\ndp = 99999999999\n",
       "run.toml:2:1: mesh.dp = 99999999999 is not an integer of at least 1 and at most 1048576, "
       "or \"auto\""},
      {"[mesh]\nstage_layers = [3, -1]\n",
       "run.toml:2:1: mesh.stage_layers = [ 3, -1 ] is not a list of integers of at least 0"},
      {"[mesh]\nstage_layers = 3\n",
       "run.toml:2:1: mesh.stage_layers = 3 is not a list of integers of at least 0"},
      {"[mesh]\nzero = 4\n",
       "run.toml:2:1: mesh.zero = 4 is not an integer of at least 0 and at most 3"},
      {"[checkpoint]\nasync = 1\n", "run.toml:2:1: checkpoint.async = 1 is not true or false"},
      {"[checkpoint]\nwhen_busy = \"drop\"\n",
       "run.toml:2:1: checkpoint.when_busy = \"drop\" is not one of \"wait\", \"skip\""},
      {"[checkpoint]\nnode_local_keep_last = 0\n",
       "run.toml:2:1: checkpoint.node_local_keep_last = 0 is not an integer of at least 1"},
      {"[checkpoint]\nnode_local_every_steps = -1\n",
       "run.toml:2:1: checkpoint.node_local_every_steps = -1 is not an integer of at least 0"},
      {"[checkpoint]\nfiles = \"nodes\"\n",
       "run.toml:2:1: checkpoint.files = \"nodes\" is not one of \"rank\", \"node\", or \"N\" with "
       "N from 1 "
       "to 999999; did you mean \"node\"?"},
      {"[model.rope_scaling]\nfaktor = 2\n",
       "run.toml:2:1: unknown key \"faktor\" in [model.rope_scaling]; did you mean \"factor\"?"},
      {"[train]\nsteps = 5\nsteps = 6\n", "run.toml:3:"},
      {"[train\n", "run.toml:1:"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.text);
    CHECK_THAT(refusal(each.text), Catch::Matchers::StartsWith(each.message));
  }
}

TEST_CASE("all problems of a file are told at once, in the order of its lines", "[run_config]") {
  CHECK(refusal("[train]\nstep = 5\n[model]\nlayers = 0.5\n[optim]\nlr = -1\n") ==
        "run.toml:2:1: unknown key \"step\" in [train]; did you mean \"steps\"?\n"
        "  run.toml:4:1: model.layers = 0.5 is not an integer of at least 1 and at most 100000\n"
        "  run.toml:6:1: optim.lr = -1 is not a number of at least 0");
}

TEST_CASE("--set is refused like a line of the file", "[run_config]") {
  CHECK(refusal(data_table, {"train.stepz=3"}) ==
        "--set: unknown key \"stepz\" in [train]; did you mean \"steps\"?");
  CHECK(refusal(data_table, {"trian.steps=3"}) ==
        "--set: unknown table [trian]; did you mean [train]?");
  CHECK(refusal(data_table, {"steps=3"}) ==
        "--set: \"steps\" stands outside a table; it belongs in [train]");
  CHECK(refusal(data_table, {"train=3"}) == "--set: train is a table; write train.key=value");
  CHECK(refusal(data_table, {"train.steps"}) ==
        "--set: \"train.steps\" has no \"=\"; write table.key=value");
  CHECK(refusal(data_table, {"train.steps="}) ==
        "--set: train.steps =  is not an integer of at least 0");
  CHECK(refusal(data_table, {"train.steps=3\nseed=4"}) ==
        "--set: \"train.steps\" sets more than one key");
  CHECK(refusal(data_table, {"train.steps=many"}) ==
        "--set: train.steps = many is not an integer of at least 0");
  CHECK(refusal(data_table, {"mesh.dp=two"}) ==
        "--set: mesh.dp = two is not an integer of at least 1 and at most 1048576, or \"auto\"");
  CHECK(refusal(data_table, {"data.train=[\"x\""})
            .starts_with("--set: data.train = [\"x\" is not a list of strings (Error while"));
  CHECK(refusal(data_table, {"=3"}).starts_with("--set: unknown table []"));
}

TEST_CASE("a plan needs no data, and training does", "[run_config]") {
  const EffectiveConfig effective = parse_run_config("[data]\ntrain = []\n", "run.toml");
  try {
    validate_data(effective.config, effective.origins);
    FAIL("it was accepted");
  } catch (const UserError& error) {
    CHECK(std::string(error.what()) ==
          "run.toml:2:1: data.train is empty (there is nothing to train on); name the token files: "
          "train = [\"tokens/*.bin\"] in [data]");
  }
}

TEST_CASE("values that do not fit together are refused with values that do", "[run_config]") {
  struct Case {
    std::string text;
    std::string message;
  };
  const std::vector<Case> cases{
      {"[train]\nglobal_batch = 512\nmicro_batch = 6\n[mesh]\ndp = 4\n" + data_table,
       "run.toml:3:1: train.micro_batch = 6 does not divide a rank's share of 128 sequences "
       "(train.global_batch = 512, "
       "mesh.dp = 4); set it to 4 or 8, or train.global_batch to 504 or 528"},
      {"[train]\nglobal_batch = 3\nmicro_batch = 4\n[mesh]\ndp = 1\n" + data_table,
       "run.toml:3:1: train.micro_batch = 4 does not divide a rank's share of 3 sequences "
       "(train.global_batch = 3, "
       "mesh.dp = 1); set it to 3, or train.global_batch to 4"},
      {"[train]\nglobal_batch = 10\nmicro_batch = 1\n[mesh]\ndp = 4\n" + data_table,
       "run.toml:2:1: train.global_batch = 10 does not divide among mesh.dp = 4 ranks (each takes "
       "the same share); set "
       "it to 8 or 12"},
      {"[train]\nhead_chunks = 600\nmicro_batch = 1\n[model]\ncontext = 1024\n[mesh]\ncp = 2\n" +
           data_table,
       "run.toml:2:1: train.head_chunks = 600 is more than a rank has tokens of a micro-batch "
       "(train.micro_batch = 1 x model.context = 1024 / mesh.cp = 2, and a chunk has one at "
       "least); "
       "set it to 512 or less"},
      {"[train]\nprecision = \"f16\"\n[optim]\nstochastic_rounding = true\n" + data_table,
       "run.toml:4:1: optim.stochastic_rounding = true does not go with train.precision = \"f16\" "
       "(it is for weights in bf16); set train.precision to \"bf16\", or "
       "optim.stochastic_rounding to false"},
      {"[train]\nrecompute = \"every:5\"\n[model]\nlayers = 4\n" + data_table,
       "run.toml:2:1: train.recompute = \"every:5\" does not fit model.layers = 4 (a group is at "
       "most the whole model); set it to \"every:4\" or less, or to \"full\""},
      {"[optim]\nlr = 1e-4\nmin_lr = 1e-3\n" + data_table,
       "run.toml:3:1: optim.min_lr = 0.001 is above optim.lr = 0.0001 (the rate would rise); set "
       "it "
       "to 0.0001 or less"},
      {"[train]\nsteps = 10\n[optim]\nwarmup_steps = 20\n" + data_table,
       "run.toml:4:1: optim.warmup_steps = 20 is longer than optim.decay_steps = 10 (the warm-up "
       "is part of it); "
       "shorten one or lengthen the other"},
      {"[optim]\nschedule = \"wsd\"\nwarmup_steps = 10\ndecay_steps = 100\ncooldown_steps = 95\n" +
           data_table,
       "run.toml:5:1: optim.cooldown_steps = 95 is longer than what the warm-up leaves "
       "(optim.decay_steps = 100, "
       "optim.warmup_steps = 10); set it to 90 or less"},
      {"[train]\nsteps = 40\n[optim]\nschedule = \"wsd\"\nwarmup_steps = 40\n" + data_table,
       "run.toml:5:1: optim.warmup_steps = 40 leaves no update for the cool-down of "
       "optim.schedule = \"wsd\" (optim.decay_steps = 40); set it to 39 or less, or choose "
       "optim.schedule = \"constant\""},
      {"[optim]\nschedule = \"wsd\"\nwarmup_steps = 7\ndecay_steps = 7\ncooldown_steps = 1\n" +
           data_table,
       "run.toml:3:1: optim.warmup_steps = 7 leaves no update for the cool-down of optim.schedule "
       "= "
       "\"wsd\" (optim.decay_steps = 7); set it to 6 or less, or choose optim.schedule = "
       "\"constant\""},
      {"[model]\nhidden = 770\n" + data_table,
       "run.toml:2:1: model.heads = 12 does not divide model.hidden = 770"},
      {"[model]\nheads = 8\nkv_heads = 3\n" + data_table,
       "run.toml:3:1: model.kv_heads = 3 does not divide model.heads = 8"},
      {"[checkpoint]\nnode_local_dir = \"/dev/shm/x\"\nevery_steps = 100\n" + data_table,
       "run.toml:2:1: checkpoint.node_local_dir = \"/dev/shm/x\" needs "
       "checkpoint.node_local_every_steps "
       "(nothing would be saved there); set it to some steps, fewer than checkpoint.every_steps = "
       "100, or leave checkpoint.node_local_dir out"},
      {"[checkpoint]\nnode_local_dir = \"/dev/shm/x\"\nevery_steps = 100\nnode_local_every_steps = "
       "300\n" +
           data_table,
       "run.toml:4:1: checkpoint.node_local_every_steps = 300 is a multiple of "
       "checkpoint.every_steps = "
       "100 (all of its steps go to checkpoint.dir); set it to fewer steps than that, or leave "
       "checkpoint.node_local_dir out"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.text);
    CHECK_THAT(refusal(each.text), Catch::Matchers::StartsWith(each.message));
  }
}

TEST_CASE("a mesh in a word is the overrides of its keys", "[run_config]") {
  CHECK(mesh_overrides("tp=2,stage_layers=[1,2],schedule=\"a,b\",train.micro_batch=1") ==
        std::vector<std::string>{"mesh.pp=1", "mesh.dp=1", "mesh.cp=1", "mesh.tp=1", "mesh.tp=2",
                                 "mesh.stage_layers=[1,2]", "mesh.schedule=\"a,b\"",
                                 "train.micro_batch=1"});
  for (const std::string none : {"2", "=2", "tp=2,", ""}) {
    CHECK_THROWS_WITH(mesh_overrides(none), ContainsSubstring("has no value"));
  }
  CHECK_THROWS_WITH(mesh_overrides("pp=2,tp=2,mesh.pp=2"),
                    ContainsSubstring("mesh.pp stands there twice"));
}

TEST_CASE("validate_batch names the resolved dp when it was automatic", "[run_config]") {
  const EffectiveConfig effective =
      parse("[train]\nglobal_batch = 8\nmicro_batch = 2\n" + data_table);
  validate_batch(effective.config, 4, effective.origins);
  CHECK_THROWS_WITH(validate_batch(effective.config, 8, effective.origins),
                    ContainsSubstring("run.toml:3:1") &&
                        ContainsSubstring("set it to 1, or train.global_batch to 16"));
}

TEST_CASE("of two values for one key on the command line the last counts, with a note",
          "[run_config]") {
  const EffectiveConfig twice = parse(data_table, {"train.steps=3", "optim.lr=1", "train.steps=4"});
  CHECK(twice.config.train.steps == 4);
  CHECK(twice.notes ==
        std::vector<std::string>{"train.steps is given more than once on the command "
                                 "line, with different values: the last one counts"});
  CHECK(parse(data_table, {"train.steps=4", "train.steps=4"}).notes.empty());
  CHECK(parse("[train]\nsteps = 3\n" + data_table, {"train.steps=4"}).notes.empty());
}

TEST_CASE("values that do nothing are accepted with a warning", "[run_config]") {
  const EffectiveConfig effective =
      parse("[optim]\nmomentum = 0.5\n[model]\nrope_theta = 5e5\n" + data_table,
            {"train.eval_every_steps=5"});
  CHECK(effective.warnings ==
        std::vector<std::string>{
            "run.toml:4:1: model.rope_theta has no effect (it needs model.positions = \"rotary\")",
            "--set: train.eval_every_steps has no effect (it needs data.validation)",
            "run.toml:2:1: optim.momentum has no effect (it needs optim.name = \"sgd\")"});
}

TEST_CASE("steps between checkpoints need a folder, and may be as rare where those are left out",
          "[run_config]") {
  CHECK(parse("[checkpoint]\nnode_local_every_steps = 5\n" + data_table,
              {"checkpoint.node_local_partner=false"})
            .warnings ==
        std::vector<std::string>{
            "run.toml:2:1: checkpoint.node_local_every_steps has no effect (it needs "
            "checkpoint.node_local_dir)",
            "--set: checkpoint.node_local_partner has no effect (it needs "
            "checkpoint.node_local_dir)"});
  const std::string text =
      "[checkpoint]\nnode_local_dir = \"/dev/shm/x\"\nnode_local_every_steps = 5\n" + data_table;
  CHECK(parse(text, {"checkpoint.every_steps=0"}).config.checkpoint.node_local_keep_last == 1);
  CHECK(parse(text,
              {"checkpoint.every_steps=5", "checkpoint.async=true", "checkpoint.when_busy=skip"})
            .warnings.empty());
}

TEST_CASE("a missing run file is named", "[run_config]") {
  const fourfold::harness::ScratchFolder folder;
  const std::filesystem::path file = folder / "run.toml";
  const auto refusal = [&](const std::string& why) {
    return "cannot read the run file " + file.string() + " (it " + why + "); check its path";
  };
  CHECK_THROWS_WITH(load_run_config(file), refusal("cannot be opened: No such file or directory"));
  std::filesystem::create_directory(file);
  CHECK_THROWS_WITH(load_run_config(file), refusal("is not a regular file (it is a folder)"));
  std::filesystem::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(load_run_config(file), refusal("is not a regular file (it is a pipe)"));
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  CHECK_THROWS_WITH(load_run_config(file), refusal("is not a regular file (it is a device)"));
  std::filesystem::remove(file);
  // A link that a user has made is followed.
  std::filesystem::create_symlink(folder.write("other.toml", data_table), file);
  CHECK(load_run_config(file).config.data.train.size() == 1);
  std::filesystem::resize_file(folder / "other.toml", (16 << 20) + 1);
  CHECK_THROWS_WITH(load_run_config(file),
                    refusal("has 16777217 bytes, more than the 16777216 it may have"));
}

TEST_CASE("compression takes words and ranks, and refuses what keeps no whole gradients",
          "[run_config]") {
  const auto compression = [](const std::string& text) {
    return parse(data_table, {"mesh.dp_compress=" + text}).config.mesh.dp_compress;
  };
  CHECK(compression("int8") ==
        fourfold::parallel::GradientCompression{fourfold::parallel::Compression::int8, 0});
  CHECK(compression("lowrank:4") ==
        fourfold::parallel::GradientCompression{fourfold::parallel::Compression::low_rank, 4});
  CHECK(name(compression("lowrank:1024")) == "lowrank:1024");
  for (const std::string text :
       {"int4", "lowrank", "lowrank:", "lowrank:0", "lowrank:1025", "lowrank:2x", "lowrank:-1"}) {
    CAPTURE(text);
    CHECK_THAT(refusal(data_table, {"mesh.dp_compress=" + text}),
               ContainsSubstring("\"lowrank:R\" with R from 1 to 1024"));
  }
  CHECK_THAT(refusal(data_table, {"mesh.dp_compress=int8", "mesh.dp_reduce=micro_batch"}),
             ContainsSubstring("set mesh.dp_reduce to \"step\""));
  CHECK_THAT(refusal(data_table, {"mesh.dp_compress=int8", "mesh.zero=2"}),
             ContainsSubstring("set mesh.zero to 1, or mesh.dp_reduce to \"step\""));
  CHECK(refusal(data_table, {"mesh.dp_compress=int8", "mesh.zero=3", "mesh.dp_reduce=step"}) ==
        "accepted");
}

TEST_CASE("local replicas send no gradients that could be compressed", "[run_config]") {
  CHECK_THAT(refusal(data_table, {"mesh.dp_mode=local", "mesh.dp_compress=int8"}),
             ContainsSubstring("no gradients travel over the dp axis"));
  const EffectiveConfig idle =
      parse(data_table, {"mesh.average_every=5", "optim.outer=nesterov", "optim.outer_lr=0.5"});
  CHECK(idle.warnings.size() == 3);
  const EffectiveConfig used = parse(data_table, {"mesh.dp_mode=local", "mesh.average_every=5",
                                                  "optim.outer=nesterov", "optim.outer_lr=0.5"});
  CHECK(used.warnings.empty());
  CHECK(used.config.mesh.average_every == 5);
  CHECK(used.config.optim.outer == OuterOptimizerKind::nesterov);
}
