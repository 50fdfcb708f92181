// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// State that lies elsewhere than in device memory: the same bits, on any mesh, across restarts.
#include "run/tiny_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/state_tier.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <filesystem>
#include <string>
#include <vector>

using namespace fourfold;
using test::check_same_bits;
using test::joined;
using test::Options;
using test::RunTrace;
using test::TinyRun;

namespace {

/// The smallest buffer: a tile is a page, so that every matrix is cut.
Options offloaded(const std::string& tier) {
  return {"offload.optimizer=" + tier, "offload.buffer_mb=0.1"};
}

std::string on_disk(const harness::ScratchFolder& folder) {
  return "nvme:" + folder.path().string();
}

}  // namespace

TEST_CASE("offloaded state has the bits of state in memory", "[offload]") {
  const std::string family = GENERATE("gpt2", "llama");
  const Options kind = GENERATE(
      Options{"train.precision=f32"}, Options{"train.precision=bf16"},
      Options{"train.precision=f32", "optim.clip_norm=0"}, Options{"optim.name=sgd"},
      Options{"train.precision=f16", "train.loss_scale_initial=1073741824"});  // overflows first
  const TinyRun tiny(family);
  const harness::ScratchFolder disk;
  const RunTrace plain = tiny.train(1, 12, "plain", kind);
  check_same_bits(plain, tiny.train(1, 12, "cpu", joined(kind, offloaded("cpu"))));
  check_same_bits(plain, tiny.train(1, 12, "nvme", joined(kind, offloaded(on_disk(disk)))));
  CHECK(std::filesystem::is_empty(disk.path()));
}

TEST_CASE("a run goes on with its state elsewhere, to the same bits", "[offload]") {
  const TinyRun tiny("gpt2");
  const harness::ScratchFolder disk;
  const Options plain{"checkpoint.every_steps=2", "train.precision=bf16"};
  const RunTrace whole = tiny.train(1, 8, "whole", plain);
  tiny.train(1, 2, "moved", plain);
  tiny.train(1, 4, "moved", joined(plain, offloaded(on_disk(disk))));
  tiny.train(1, 6, "moved", joined(plain, offloaded("cpu")));
  const RunTrace moved = tiny.train(1, 8, "moved", joined(plain, offloaded(on_disk(disk))));
  CHECK(moved.weights == whole.weights);
  CHECK(moved.moments == whole.moments);
  CHECK(moved.losses.back() == whole.losses.back());
}

TEST_CASE("activations may move to the host and back on a restart", "[offload]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const Options plain{"checkpoint.every_steps=2", "train.precision=f16", "model.dropout=0.1",
                      "train.loss_scale_initial=1073741824"};  // overflows first
  const RunTrace whole = tiny.train(1, 12, "whole", plain);
  check_same_bits(whole, tiny.train(1, 12, "on_host", joined(plain, {"offload.activations=cpu"})));
  tiny.train(1, 4, "moved", plain);
  tiny.train(1, 8, "moved", joined(plain, {"offload.activations=cpu", "offload.optimizer=cpu"}));
  const RunTrace moved = tiny.train(1, 12, "moved", plain);
  CHECK(moved.weights == whole.weights);
  CHECK(moved.losses.back() == whole.losses.back());
}

TEST_CASE("a plan tells what is elsewhere without touching a disk", "[offload]") {
  const TinyRun tiny("gpt2");
  const auto planned = [&](const std::string& tier) {
    const runfile::RunConfig config = tiny.config(1, "plan", {"offload.optimizer=" + tier}).config;
    return train::plan_rank(train::resolve_run({.config = config}, comm::MeshShape{}), 0);
  };
  const auto optimizer = static_cast<std::size_t>(device::MemoryUse::optimizer);
  const train::RankPlan none = planned("none");
  const train::RankPlan cpu = planned("cpu");
  const train::RankPlan nvme = planned("nvme:" + (tiny.folder() / "none").string());
  CHECK(none.memory_bytes[optimizer] > 0);
  CHECK(none.host_bytes + none.file_bytes == 0);
  CHECK(cpu.memory_bytes[optimizer] == 0);
  CHECK(cpu.file_bytes == 0);
  CHECK(nvme.memory_bytes[optimizer] == 0);
  // f32: two moments, and masters that are no longer the weights.
  CHECK(2 * nvme.file_bytes > 3 * none.memory_bytes[optimizer]);
  CHECK(cpu.host_bytes > nvme.file_bytes);
}

TEST_CASE("a directory that cannot take the state is refused before anything else", "[offload]") {
  const TinyRun tiny("gpt2");
  const auto refusal = [&](const std::string& path) -> std::string {
    try {
      tiny.train(1, 1, "refused", {"offload.optimizer=nvme:" + path});
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
      return error.what();
    }
    return "trained";
  };
  const std::string none = (tiny.folder() / "none").string();
  CHECK(refusal(none).find(none + ": No such file") != std::string::npos);
  CHECK(refusal(tiny.training_tokens() + ".bin").find("is not a directory") != std::string::npos);
}
