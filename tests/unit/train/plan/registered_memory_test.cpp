// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whether what a run moves through NCCL lies in memory that it was told of: by the very
/// communicator that moves it, and in pages that other devices can be let into. The emulated NCCL
/// also ends the process where an operation finds buffers registered on some of its ranks only.
#include "nccl_traffic.hpp"
#include "run/tiny_run.hpp"

#include <fourfold/comm/mesh.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace fourfold::test {
namespace {

using harness::Findings;
using Overrides = std::vector<std::string>;

/// The losses and the norm are single numbers, which gain nothing.
constexpr std::size_t number_bytes = 8;

struct Case {
  comm::MeshShape mesh;
  Overrides overrides;
  std::set<std::string> movers;  ///< communicators that move weights, gradients or activations
};

/// Whether all that was taken found room in what was planned: a block for each use.
void check_blocks(const device::Arena& arena, Findings& findings) {
  std::map<device::MemoryUse, int> blocks;
  arena.for_each([&](device::MemoryUse use, void*, std::size_t) { ++blocks[use]; });
  for (const auto& [use, count] : blocks) {
    findings.check(count == 1, fmt::format("{} blocks of {}", count, name(use)));
  }
}

void train(const Case& tried, const Overrides& places, comm::Communicator& world,
           Findings& findings) {
  const TinyRun tiny("llama");
  Overrides overrides = places;
  overrides.insert(overrides.end(), {"train.eval_batches=1", "train.eval_every_steps=1"});
  overrides.insert(overrides.end(), tried.overrides.begin(), tried.overrides.end());
  const runfile::EffectiveConfig config = tiny.config(2, "registered", overrides);
  comm::Mesh mesh(tried.mesh, world);
  train::Trainer trainer(train::resolve_run(config, tried.mesh), mesh,
                         {.allowed_changes = {}, .facts = {}}, nullptr);
  check_blocks(trainer.memory(), findings);
  trainer.run();
}

void check(const Case& tried) {
  harness::on_ranks([&](comm::Communicator& world, Findings& findings) {
    const TinyRun shared("llama");
    const auto of_first = [&](const std::string& text) {
      return comm::broadcast_text(world, text, 0);
    };
    const std::string folder = of_first(shared.folder().string());
    const Overrides places{
        fmt::format("data.train=[\"{}\"]", of_first(shared.training_tokens())),
        fmt::format("data.validation=[\"{}\"]", of_first(shared.held_back_tokens())),
        fmt::format("checkpoint.dir=\"{}/checkpoints\"", folder),
        fmt::format("log.dir=\"{}/log\"", folder)};
    emulated::forget_nccl_traffic();
    train(tried, places, world, findings);
    const auto traffic = emulated::nccl_traffic();
    for (const auto& [name, its] : traffic) {
      findings.check(
          its.largest_unregistered_bytes <= number_bytes,
          fmt::format("{}: '{}' moves {} bytes at once that are not registered with it",
                      fmt::join(tried.overrides, " "), name, its.largest_unregistered_bytes));
    }
    for (const auto& [name, its] : traffic) {
      findings.check(its.reachable_bytes == its.registered_bytes,
                     fmt::format("{}: '{}' moves {} registered bytes that no peer can reach",
                                 fmt::join(tried.overrides, " "), name,
                                 its.registered_bytes - its.reachable_bytes));
    }
    for (const std::string& name : tried.movers) {
      const auto found = traffic.find(name);
      findings.check(
          found != traffic.end() && found->second.registered_bytes > 1000,
          fmt::format("{}: '{}' moves registered memory", fmt::join(tried.overrides, " "), name));
    }
    world.barrier();  // the first one's folder ends here
  });
}

int ranks_here() {
  int ranks = 0;
  harness::on_ranks([&](comm::Communicator& world, Findings&) { ranks = world.size(); });
  return ranks;
}

TEST_CASE("weights and gradients are registered with what moves them, whatever ZeRO shards",
          "[registered_memory]") {
  const int ranks = ranks_here();
  for (const int zero : {0, 1, 2, 3}) {
    const std::string group = zero == 0 ? "dp*cp" : "zero";
    const std::string stage = fmt::format("mesh.zero={}", zero);
    check({{.dp = ranks}, {stage}, {group}});
    check({{.dp = ranks}, {stage, "train.precision=bf16", "mesh.dp_reduce=step"}, {group}});
    check({{.dp = ranks}, {stage, "mesh.dp_reduce=micro_batch"}, {group}});
    check({{.cp = ranks}, {stage}, {group, "cp messages"}});
    if (ranks == 4) {
      check({{.dp = 2, .tp = 2}, {stage}, {group, "tp"}});
    }
  }
  if (ranks == 4) {
    check({{.dp = 4}, {"mesh.zero=2", "mesh.zero_group=2"}, {"zero", "replicas"}});
    check({{.dp = 4}, {"mesh.zero=3", "mesh.zero_group=2"}, {"zero", "replicas"}});
  }
}

TEST_CASE("so is what the other axes move", "[registered_memory]") {
  const int ranks = ranks_here();
  for (const char* const sequences :
       {"mesh.sequence_parallel=true", "mesh.sequence_parallel=false"}) {
    check({{.dp = ranks / 2, .tp = 2}, {sequences}, {"tp"}});
    if (ranks == 4) {  // pairs of ranks hold a key/value head
      check({{.tp = 4}, {sequences, "model.heads=4", "model.kv_heads=2"}, {"tp", "tp.kv"}});
    }
  }
  for (const char* const mode : {"ring", "ulysses", "allgather"}) {
    const std::string chosen = fmt::format("mesh.context_mode=\"{}\"", mode);
    const std::string mover = mode == std::string("ring") ? "cp messages" : "cp";
    check({{.dp = ranks / 2, .cp = 2}, {chosen}, {mover, "dp*cp"}});
    check({{.dp = ranks / 2, .cp = 2}, {chosen, "train.precision=bf16"}, {mover, "dp*cp"}});
  }
  for (const char* const precision : {"f32", "bf16"}) {
    check({{.pp = 2, .dp = ranks / 2},
           {"model.tie_embeddings=true", fmt::format("train.precision=\"{}\"", precision)},
           {"pp messages", "pp.tied"}});
  }
}

TEST_CASE("so is what compression and local replicas move", "[registered_memory]") {
  const int ranks = ranks_here();
  for (const char* const kind : {"bf16", "int8", "lowrank:2"}) {
    check({{.dp = ranks}, {fmt::format("mesh.dp_compress=\"{}\"", kind)}, {"dp*cp"}});
  }
  for (const char* const precision : {"f32", "bf16"}) {
    const std::string stored = fmt::format("train.precision=\"{}\"", precision);
    check({{.dp = ranks},
           {"mesh.dp_mode=local", "mesh.average_every=1", "optim.outer=nesterov", stored},
           {"dp"}});
  }
}

}  // namespace
}  // namespace fourfold::test
