// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/tiny_run.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/trainer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace fourfold::train {
namespace {

using test::TinyRun;

const std::vector<std::string> four_axes{"mesh.pp=2",
                                         "mesh.cp=2",
                                         "mesh.tp=2",
                                         "mesh.schedule=zb-v",
                                         "mesh.stage_layers=[0,1,1,0]",
                                         "train.micro_batch=2",
                                         "train.precision=bf16"};

/// Of a rank, in its arena and on its host.
struct Taken {
  device::MemoryBytes memory{};
  std::size_t host = 0;
  std::size_t image = 0;
};

/// What the ranks of a real run took, batches and evaluation included, one after the other.
std::vector<Taken> memory_of_run(const runfile::EffectiveConfig& effective, int ranks) {
  std::vector<Taken> taken(static_cast<std::size_t>(ranks));
  comm::run_device_ranks(ranks, [&](comm::Communicator& world) {
    const comm::MeshShape shape = comm::resolve_mesh(effective.config.mesh.shape, ranks);
    comm::Mesh mesh(shape, world);
    const Trainer trainer(resolve_run(effective, shape), mesh, {}, nullptr);
    Taken& mine = taken[static_cast<std::size_t>(world.rank())];
    for (std::size_t use = 0; use < device::memory_use_count; ++use) {
      mine.memory[use] = trainer.memory().bytes(static_cast<device::MemoryUse>(use));
    }
    mine.host = trainer.tier().host_bytes();
    mine.image = trainer.image_bytes();
  });
  return taken;
}

const std::vector<std::vector<std::string>> more_options{
    {},
    {"mesh.dp_compress=\"int8\""},
    {"mesh.dp_compress=\"lowrank:2\"", "mesh.zero=1"},
    {"train.head_chunks=3", "mesh.zero=3"},
    {"offload.activations=cpu"},
    {"offload.activations=cpu", "mesh.stage_layers=[2,2,2,2]", "model.layers=8",
     "train.recompute=full", "offload.optimizer=cpu"},
    {"train.head_chunks=16", "mesh.zero=3", "mesh.tile_linear=3"},
    {"mesh.tp=1", "mesh.dp_mode=local", "optim.outer=nesterov", "mesh.zero=1"}};

TEST_CASE("a planned rank needs to the byte what a real one takes", "[rank_plan]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  for (const std::vector<std::string>& more : more_options) {
    std::vector<std::string> options = four_axes;
    options.insert(options.end(), more.begin(), more.end());
    const runfile::EffectiveConfig effective = tiny.config(1, "planned", options);
    const ResolvedRun run = resolve_run(effective, 8);
    const std::vector<Taken> taken = memory_of_run(effective, 8);
    for (int rank = 0; rank < 8; ++rank) {
      CAPTURE(family, more, rank);
      const RankPlan plan = plan_rank(run, rank);
      CHECK(plan.memory_bytes == taken[static_cast<std::size_t>(rank)].memory);
      CHECK(plan.host_bytes == taken[static_cast<std::size_t>(rank)].host);
      CHECK(plan.image_bytes == taken[static_cast<std::size_t>(rank)].image);
    }
  }
}

TEST_CASE("a planned rank counts the memory of libraries on a device", "[rank_plan]") {
  const TinyRun tiny("gpt2");
  runfile::RunConfig config = tiny.config(1, "planned", {"train.precision=bf16"}).config;
  config.model = model::preset("gpt2-124m");
  config.train.micro_batch = 4;
  const auto planned = [&](const comm::MeshShape& mesh, int capability) {
    return plan_rank(resolve_run({.config = config}, mesh), 0, capability).library_bytes;
  };
  const auto on_device = [](std::size_t bytes) { return device::has_own_memory ? bytes : 0; };
  constexpr std::size_t of_products = std::size_t{32} << 20;
  // 2 B N T^2 + 4 B N T of 4 x 12 heads of 1024 tokens, and 256.
  CHECK(planned({}, 90) == on_device(100860160));
  CHECK(planned({}, 100) == on_device(of_products));
  // Parts of up to 256 queries and 512 keys: their gradients of 16 bits in scratch memory.
  CHECK(planned({.cp = 2}, 90) == on_device(of_products + 4 * 768 * 2 * (256 + 2 * 512)));
  config.train.deterministic_attention = false;
  CHECK(planned({}, 90) == on_device(of_products));
  config.train.precision = DType::f32;
  CHECK(planned({.cp = 2}, 90) == on_device(of_products));
}

TEST_CASE("a plan says that heads are too wide for the device, as its run would", "[rank_plan]") {
  const TinyRun tiny("gpt2");
  runfile::RunConfig config = tiny.config(1, "planned", {}).config;
  config.model.attention.head_dim = 257;
  const auto plan = [&] {
    return plan_rank(resolve_run({.config = config}, comm::MeshShape{}), 0);
  };
  if (device::has_own_memory) {
    CHECK_THROWS_AS(plan(), UserError);
  } else {
    CHECK(!plan().tensors.empty());
  }
  config.model.attention.head_dim = 256;
  CHECK(!plan().tensors.empty());
}

/// Of a rank of gpt2-124m over dp = 8, without any of it.
RankPlan plan_of_124m(int zero, const std::string& precision, std::int64_t rank) {
  const TinyRun tiny("gpt2");
  runfile::RunConfig config = tiny.config(1, "planned", {"train.precision=" + precision}).config;
  config.model = model::preset("gpt2-124m");
  config.train.micro_batch = 1;
  config.mesh.zero = zero;
  const comm::MeshShape mesh{.dp = 8};
  return plan_rank(resolve_run({.config = config}, mesh), rank);
}

TEST_CASE("ZeRO holds what the formulas say", "[rank_plan]") {
  const auto parameters = static_cast<double>(model::parameter_count(model::preset("gpt2-124m")));
  // Bytes per parameter that a rank has, and that it has a share of. Gradients are f32; bf16 has
  // f32 masters beside two moments.
  struct Row {
    std::string precision;
    int zero;
    double whole;
    double shared;
  };
  for (const Row& row : std::vector<Row>{{"bf16", 0, 18, 0},
                                         {"bf16", 1, 6, 12},
                                         {"bf16", 2, 2, 16},
                                         {"bf16", 3, 0, 18},
                                         {"f32", 0, 16, 0},
                                         {"f32", 1, 8, 8},
                                         {"f32", 2, 4, 12},
                                         {"f32", 3, 0, 16}}) {
    const double expected = parameters * (row.whole + row.shared / 8);
    for (const std::int64_t rank : {0, 3, 7}) {
      const RankPlan plan = plan_of_124m(row.zero, row.precision, rank);
      double state = 0;
      for (const device::MemoryUse use : {device::MemoryUse::weights, device::MemoryUse::gradients,
                                          device::MemoryUse::optimizer}) {
        state += static_cast<double>(plan.memory_bytes[static_cast<std::size_t>(use)]);
      }
      CAPTURE(row.precision, row.zero, rank, state / parameters, expected / parameters);
      CHECK(std::abs(state - expected) < 0.01 * expected);
    }
  }
}

TEST_CASE("a planned head in chunks has the logits of one chunk", "[rank_plan]") {
  const TinyRun tiny("llama");
  std::vector<std::string> options = four_axes;
  const auto plan_of_head = [&](const std::string& chunks) {
    options.back() = "train.head_chunks=" + chunks;  // and f32
    const runfile::RunConfig config = tiny.config(1, "planned", options).config;
    const comm::MeshShape mesh{.pp = 2, .dp = 1, .cp = 2, .tp = 2};
    const ResolvedRun run = resolve_run({.config = config}, mesh);
    return std::pair(plan_rank(run, 0).memory_bytes,  // zb-v: stages 0 and 3
                     run.layout.schedule.slots(0, 1));
  };
  const auto [whole, slots] = plan_of_head("1");
  const auto [cut, same_slots] = plan_of_head("3");
  CHECK(slots == same_slots);
  constexpr auto activations = static_cast<std::size_t>(device::MemoryUse::activations);
  // 16 rows of the 27 columns that tp leaves of 53, of each slot; then 6 of them.
  CHECK(whole[activations] - cut[activations] == (16U * static_cast<unsigned>(slots) - 6) * 27 * 4);
}

TEST_CASE("with activations on the host a planned rank has no more of them for more layers",
          "[rank_plan]") {
  const auto planned = [](const std::string& activations, std::int64_t layers) {
    const TinyRun tiny("llama");
    runfile::RunConfig config =
        tiny.config(1, "planned",
                    {"mesh.pp=2", "mesh.schedule=1f1b", "mesh.stage_layers=[1,1]",
                     "offload.activations=" + activations})
            .config;
    config.model = model::preset("llama-3-8b");
    config.model.layers = layers;
    config.model = config.model.resolved();
    config.mesh.stage_layers = {layers / 2, layers / 2};
    config.train.precision = DType::bf16;
    config.train.micro_batch = 1;
    const comm::MeshShape mesh{.pp = 2};
    return plan_rank(resolve_run({.config = config}, mesh), 0);
  };
  constexpr auto activations = static_cast<std::size_t>(device::MemoryUse::activations);
  const RankPlan small = planned("cpu", 8);
  const RankPlan large = planned("cpu", 64);
  CHECK(small.memory_bytes[activations] == large.memory_bytes[activations]);
  // Two micro-batches in flight, of 28 more blocks: docs/activations.md.
  constexpr std::size_t block = 2 * (4 * 4096 + 2 * 4096 + 2 * 1024 + 3 * 14336) + 4 * (32 + 2);
  CHECK(large.host_bytes - small.host_bytes == std::size_t{2} * 8192 * 28 * block);
  // Two blocks' worth stays, and all inputs of the first one.
  CHECK(planned("none", 64).memory_bytes[activations] - large.memory_bytes[activations] ==
        large.host_bytes - std::size_t{2} * 8192 * block);
}

TEST_CASE("in tiles the buffers of ZeRO-3 have the size of tiles", "[rank_plan]") {
  const auto buffers_of = [](int tiles) {
    const TinyRun tiny("gpt2");
    runfile::RunConfig config = tiny.config(1, "planned", {"train.precision=bf16"}).config;
    config.model = model::preset("gpt2-124m");
    config.train.micro_batch = 1;
    config.mesh.zero = 3;
    config.mesh.tile_linear = tiles;
    const comm::MeshShape mesh{.dp = 8};
    const RankPlan plan = plan_rank(resolve_run({.config = config}, mesh), 3);
    return static_cast<double>(
        plan.memory_bytes[static_cast<std::size_t>(device::MemoryUse::communication)]);
  };
  // bf16 weights, f32 gradients, and f32 of a share of each buffer on its way. Whole: two blocks of
  // 12 h^2 and the embedding with positions. In four tiles: two of h^2 and two of the embedding.
  constexpr double h = 768;
  constexpr double per_element = 2 + 4 + 4.0 / 8;
  const double whole = per_element * (2 * 12 * h * h + (50257 + 1024) * h);
  const double tiled = per_element * (2 * h * h + 2 * 50257.0 / 4 * h);
  CHECK(std::abs(buffers_of(1) - whole) < 0.01 * whole);
  CHECK(std::abs(buffers_of(4) - tiled) < 0.01 * tiled);
}

TEST_CASE("planned ranks hold every element of the model, each once per replica", "[rank_plan]") {
  const TinyRun tiny("gpt2");
  const runfile::EffectiveConfig effective = tiny.config(1, "planned", four_axes);
  const comm::MeshShape mesh{.pp = 2, .dp = 2, .cp = 2, .tp = 2};
  const ResolvedRun run = resolve_run(effective, mesh);
  std::map<std::string, std::int64_t> held;  // by distinct boxes
  std::map<std::string, std::int64_t> whole;
  std::set<std::tuple<std::string, std::string>> seen;
  std::map<std::int64_t, int> tokens;
  for (int rank = 0; rank < 16; ++rank) {
    const RankPlan plan = plan_rank(run, rank);
    for (const model::Parameter& tensor : plan.tensors) {
      whole[tensor.spec.name] = tensor.spec.shape.elements();
      if (seen.emplace(tensor.spec.name, tensor.box.str()).second) {
        held[tensor.spec.name] += tensor.box.elements();
      }
    }
    for (const Range& range : plan.tokens) {
      for (std::int64_t token = range.begin; token < range.end(); ++token) {
        ++tokens[token];
      }
    }
    for (std::size_t axis = 0; axis < comm::axis_count; ++axis) {
      const auto position =
          static_cast<std::size_t>(plan.coordinate[static_cast<comm::Axis>(axis)]);
      CHECK(plan.lines[axis].size() == 2);
      CHECK(plan.lines[axis].at(position) == rank);
    }
  }
  CHECK(held == whole);
  CHECK(whole.size() == 2 + 2 * 16 + 2);
  CHECK(tokens.size() == 16);
  for (const auto& [token, count] : tokens) {
    CHECK(count == 8);  // half of the ranks
  }
}

TEST_CASE("a rank of sixteen thousand is planned like any other", "[rank_plan]") {
  runfile::RunConfig config;
  config.model.layers = 128;
  config.model.hidden = 12288;
  config.model.attention.heads = 96;
  config.model.context = 4096;
  config.model = config.model.resolved();
  config.train.precision = DType::bf16;
  config.train.micro_batch = 1;
  config.train.global_batch = 64 * 32;
  config.mesh.schedule = "1f1b";
  const comm::MeshShape mesh{.pp = 16, .dp = 64, .cp = 2, .tp = 8};
  const RankPlan plan = plan_rank(resolve_run({.config = config}, mesh), 9381);
  CHECK(plan.coordinate == comm::MeshCoordinate{.pp = 9, .dp = 10, .cp = 0, .tp = 5});
  CHECK(plan.lines[static_cast<std::size_t>(comm::Axis::tp)].front() == 9376);
  CHECK(plan.lines[static_cast<std::size_t>(comm::Axis::pp)].at(1) == 9381 - 8 * 1024);
  // A layer of GPT-3's size: 12 h^2 + 13 h numbers, of which 12 h^2 + 7 h are cut in eight.
  std::int64_t elements = 0;
  for (const model::Parameter& tensor : plan.tensors) {
    elements += tensor.box.elements();
  }
  constexpr std::int64_t h = 12288;
  CHECK(elements % ((12 * h * h + 7 * h) / 8 + 6 * h) == 0);
  CHECK(plan.memory_bytes[static_cast<std::size_t>(device::MemoryUse::gradients)] ==
        static_cast<std::size_t>(elements) * 4);
}

}  // namespace
}  // namespace fourfold::train
