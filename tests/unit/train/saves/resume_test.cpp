// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/tiny_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/train/load_run.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <cstdint>
#include <fstream>
#include <thread>

using Catch::Matchers::ContainsSubstring;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
namespace fs = std::filesystem;

namespace {

/// The message of the UserError that `work` throws; empty when it throws none.
template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == fourfold::ExitCode::config);
    return error.what();
  }
  return "";
}

fs::path step_folder(const TinyRun& tiny, const std::string& name, const char* step) {
  return tiny.checkpoints(name) / step;
}

std::string resume_option(const fs::path& step) {
  return "checkpoint.resume=\"" + step.string() + "\"";
}

/// Changes bytes of the payload that rank 0 wrote, so that only reading the tensors shows it. In
/// three places: one alone may lie in what HDF5 keeps beside the tensors, which nobody reads.
void damage_payload(const fs::path& step) {
  for (const fs::directory_entry& entry : fs::directory_iterator(step)) {
    if (entry.path().filename().string().starts_with("shard-00000")) {
      std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      for (const std::uintmax_t quarter : {1, 2, 3}) {
        const auto place = static_cast<std::streamoff>(fs::file_size(entry.path()) * quarter / 4);
        file.seekg(place);
        const int byte = file.get();
        file.seekp(place);
        file.put(static_cast<char>(byte ^ 1));
      }
    }
  }
}

}  // namespace

TEST_CASE("training data that grew are refused, unless allowed by name", "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 2, "grown");
  tiny.grow_training_tokens();
  CHECK_THAT(refusal([&] { tiny.train(1, 4, "grown"); }),
             ContainsSubstring("3001 -> 3500") && ContainsSubstring("--allow-change=data.train"));
  CHECK(tiny.train(1, 4, "grown", {}, {"data.train"}).losses.size() == 2);
}

TEST_CASE("training data that were replaced by as many tokens are refused, unless allowed",
          "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 2, "replaced");
  tiny.replace_training_tokens();
  CHECK_THAT(refusal([&] { tiny.train(1, 4, "replaced"); }),
             ContainsSubstring("train.bin has as many tokens as then, but others") &&
                 ContainsSubstring("--allow-change=data.train"));
  CHECK(tiny.train(1, 4, "replaced", {}, {"data.train"}).losses.size() == 2);
}

TEST_CASE("an older checkpoint that damage falls back to is checked like the newest", "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 4, "fallen");
  tiny.train(1, 8, "fallen", {"optim.lr=0.002"}, {"optim.lr"});
  damage_payload(step_folder(tiny, "fallen", "step-000000008"));
  CHECK_THAT(refusal([&] { tiny.train(1, 12, "fallen", {"optim.lr=0.002"}); }),
             ContainsSubstring("optim.lr"));
  CHECK(tiny.train(1, 8, "fallen", {}, {"optim.lr"}).losses.size() == 4);
}

TEST_CASE("an explicit step is refused at the start where later ones are in the way", "[resume]") {
  const TinyRun tiny("gpt2");
  const RunTrace whole = tiny.train(1, 8, "back");
  const fs::path fourth = step_folder(tiny, "back", "step-000000004");
  CHECK_THAT(
      refusal([&] { tiny.train(1, 8, "back", {resume_option(fourth)}); }),
      ContainsSubstring("already holds step 8") && ContainsSubstring("name another log.dir"));
  const RunTrace again = tiny.train(1, 8, "elsewhere", {resume_option(fourth)});
  CHECK(again.losses.size() == 4);
  CHECK(again.weights == whole.weights);
}

TEST_CASE("what a run goes on from is chosen once nobody else saves there", "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 4, "raced");
  tiny.train(1, 8, "raced");
  const fs::path late = step_folder(tiny, "raced", "step-000000008");
  fs::rename(late, tiny.folder() / "late");
  const fs::path lease = tiny.checkpoints("raced") / ".lease";
  std::ofstream(lease) << "fourfold-lease 1 fedcba9876543210 elsewhere - 7 - 0 3\n";
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(800));  // the run finds the lease
    fs::rename(tiny.folder() / "late", late);
    fs::remove(lease);
  });
  CHECK(tiny.train(1, 12, "raced").losses.size() == 4);
}

TEST_CASE("a chain of jobs that began at an explicit step goes on from its own", "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 4, "origin");
  const std::string option = resume_option(step_folder(tiny, "origin", "step-000000004"));
  CHECK(tiny.train(1, 8, "chain", {option}).losses.size() == 4);
  CHECK(tiny.train(1, 12, "chain", {option}).losses.size() == 4);
}

TEST_CASE("a chain of jobs goes on however the step it began at is written", "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 4, "origin");
  const fs::path origin = step_folder(tiny, "origin", "step-000000004");
  const fs::path relative = fs::proximate(origin);
  fs::create_directory_symlink(origin.parent_path(), tiny.folder() / "link");
  int steps = 8;
  CHECK(tiny.train(1, steps, "chain", {resume_option(origin)}).losses.size() == 4);
  const auto goes_on = [&](const fs::path& written) {
    CAPTURE(written);
    steps += 4;
    CHECK(tiny.train(1, steps, "chain", {resume_option(written)}).losses.size() == 4);
  };
  goes_on(origin / "");
  goes_on(origin / ".");
  goes_on(relative);
  goes_on("." / relative / "");
  goes_on(tiny.folder() / "link" / origin.filename());
  fs::remove_all(origin);
  goes_on(relative / "");
  goes_on(origin);
}

TEST_CASE("a chain of jobs goes on when the step it began at is gone", "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 4, "origin");
  const fs::path origin = step_folder(tiny, "origin", "step-000000004");
  const std::string option = resume_option(origin);
  CHECK(tiny.train(1, 8, "chain", {option}).losses.size() == 4);
  fs::remove_all(origin);
  CHECK(tiny.train(1, 12, "chain", {option}).losses.size() == 4);
  CHECK_THAT(refusal([&] { tiny.train(1, 12, "other", {option}); }),
             ContainsSubstring("is no checkpoint"));
  // A purge of old files leaves folders; a byte of it goes bad.
  fs::create_directories(origin);
  CHECK(tiny.train(1, 16, "chain", {option}).losses.size() == 4);
  std::ofstream(origin / "MANIFEST.json") << "{";
  CHECK(tiny.train(1, 20, "chain", {option}).losses.size() == 4);
  CHECK_THROWS_AS(tiny.train(1, 12, "other", {option}), fourfold::UserError);
  fs::remove_all(origin);
  tiny.train(1, 4, "third");  // a run, but not one that began there
  CHECK_THAT(refusal([&] { tiny.train(1, 8, "third", {option}); }),
             ContainsSubstring("is no checkpoint"));
}

TEST_CASE("a step of the node-local tier is not gone on from in place", "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 4, "origin");
  const fs::path step = tiny.folder() / "fast" / "0123456789abcdef" / "step-000000004";
  fs::create_directories(step.parent_path());
  fs::copy(step_folder(tiny, "origin", "step-000000004"), step);
  fs::create_directory_symlink(tiny.folder() / "fast", tiny.folder() / "link");
  const std::vector<std::string> fast{
      "checkpoint.node_local_dir=\"" + (tiny.folder() / "fast").string() + "\"",
      "checkpoint.node_local_every_steps=3"};
  for (const fs::path& path : {step, tiny.folder() / "link/0123456789abcdef/step-000000004"}) {
    auto options = fast;
    options.push_back(resume_option(path));
    CHECK_THAT(refusal([&] { tiny.train(1, 8, "on", options); }),
               ContainsSubstring("lies in checkpoint.node_local_dir"));
  }
  CHECK(fs::exists(step / "MANIFEST.json"));
  CHECK(tiny.train(1, 8, "on", {resume_option(step)}).losses.size() == 4);
}

TEST_CASE("the weights alone begin a new run, whose later starts go on from its own", "[resume]") {
  const TinyRun tiny("llama");
  const RunTrace origin = tiny.train(2, 4, "origin", {"mesh.zero=1"});
  const fs::path step = step_folder(tiny, "origin", "step-000000004");
  // An update too small to change a bit shows what it began with.
  const std::vector<std::string> options{resume_option(step),
                                         "checkpoint.weights_only=true",
                                         "optim.name=sgd",
                                         "optim.lr=1e-37",
                                         "optim.weight_decay=0",
                                         "train.seed=77",
                                         "data.train=[\"" + tiny.held_back_tokens() + "\"]"};
  const RunTrace begun = tiny.train(1, 2, "tuned", options);
  CHECK(begun.losses.size() == 2);
  CHECK(begun.weights == tiny.train(1, 4, "origin").weights);
  CHECK(begun.result.progress.step == 2);
  CHECK(tiny.train(1, 5, "tuned", options).losses.size() == 3);
  tiny.train(1, 3, "other");
  CHECK_THAT(refusal([&] {
               tiny.train(1, 5, "other", {options[0], options[1]});
             }),
             ContainsSubstring("already holds step 3"));
  CHECK_THAT(
      refusal([&] {
        tiny.train(1, 5, "wider", {options[0], options[1], "model.ffn=96"});
      }),
      ContainsSubstring("model.ffn is 96, the checkpoint has ") && !ContainsSubstring("has shape"));
  // The same tensors, another function: refused unless allowed.
  const std::vector<std::string> other_norm{options[0], options[1], "model.norm_epsilon=0.01"};
  CHECK_THAT(refusal([&] { tiny.train(1, 5, "norm", other_norm); }),
             ContainsSubstring("model.norm_epsilon is 0.01, the checkpoint has ") &&
                 ContainsSubstring("--allow-change=model.norm_epsilon"));
  CHECK(tiny.train(1, 2, "norm", other_norm, {"model.norm_epsilon"}).losses.size() == 2);
  CHECK_THAT(refusal([&] { tiny.train(1, 5, "whose", {"checkpoint.weights_only=true"}); }),
             ContainsSubstring("whose weights?"));
}

TEST_CASE("a run file without [model] has that of the checkpoint, also when the run outlives it",
          "[resume]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 2, "origin");
  const fs::path step = step_folder(tiny, "origin", "step-000000002");
  const fs::path file = tiny.folder() / "tuning.toml";
  std::ofstream(file) << "[data]\ntrain = [\"" << tiny.training_tokens() << "\"]\n";
  const std::vector<std::string> options{
      resume_option(step), "checkpoint.dir=\"" + tiny.checkpoints("origin").string() + "\""};
  const auto model = tiny.config(2, "origin").config.model;
  CHECK(fourfold::train::load_run(file, options).config.model == model);
  // The step that was named is gone, and the run's own newest one tells.
  const fs::path moved = tiny.folder() / "moved";
  tiny.train(1, 3, "own");
  fs::rename(step, moved);
  const std::vector<std::string> own{resume_option(step),
                                     "checkpoint.dir=\"" + tiny.checkpoints("own").string() + "\""};
  CHECK(fourfold::train::load_run(file, own).config.model == model);
  CHECK_THAT(refusal([&] {
               fourfold::train::load_run(
                   file, std::vector<std::string>{resume_option(step), "checkpoint.dir=nowhere"});
             }),
             ContainsSubstring("is no checkpoint"));
  // Damaged steps are passed over, and what is in the newest other one is not: a key that nobody
  // knows.
  const std::vector<std::string> newest{"checkpoint.dir=\"" + tiny.checkpoints("own").string() +
                                        "\""};
  int looks = 0;
  const auto second_holds = [&](const std::string& text) {
    return [&looks, text](const std::string& path) -> std::string {
      if (++looks == 1) {
        throw fourfold::UserError(fourfold::ExitCode::data_corrupt, path + ": damaged");
      }
      return text;
    };
  };
  const std::string saved = fourfold::runfile::to_toml(tiny.config(2, "origin").config);
  tiny.train(1, 5, "own");
  CHECK(fourfold::train::load_run(file, newest, second_holds(saved)).config.model == model);
  looks = 0;
  CHECK_THAT(refusal([&] {
               fourfold::train::load_run(file, newest,
                                         second_holds(saved + "[model.bogus]\nx = 1\n"));
             }),
             ContainsSubstring("bogus") && ContainsSubstring("own/checkpoints/step-000000004"));
}
