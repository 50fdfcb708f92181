// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"
#include "small_models.hpp"
#include "sweep.hpp"

#include <fourfold/model/presets.hpp>
#include <fourfold/model/stage.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

using fourfold::DType;
using fourfold::device::Arena;
using fourfold::device::MemoryUse;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::ParallelHooks;
using fourfold::model::StageOptions;
using fourfold::model::UnitRange;
using fourfold::model_test::Model;
using fourfold::model_test::options_for;
using fourfold::model_test::small;

namespace model = fourfold::model;

namespace {

constexpr std::array all_uses{MemoryUse::weights,       MemoryUse::gradients,
                              MemoryUse::optimizer,     MemoryUse::activations,
                              MemoryUse::communication, MemoryUse::workspace};

/// What a stage takes of its arenas, by making one where there is no memory.
class Taken {
 public:
  Taken(const Architecture& config, UnitRange units, DType compute, const StageOptions& options) {
    const std::vector<model::ParameterSpec> table = model::parameter_table(config, units);
    const std::vector<fourfold::Box> boxes = model::whole_boxes(table);
    Arena others(Arena::Backing::counted);
    const model::Parameters parameters(table, boxes, compute, others,
                                       {.tiles = options.tiles ? 2 : 1});
    ParallelHooks hooks;
    const model::Stage stage(config, units, parameters, hooks, device_, options, &host_);
  }

  std::int64_t on_device(MemoryUse use) const {
    return static_cast<std::int64_t>(device_.bytes(use));
  }
  std::int64_t on_host() const { return static_cast<std::int64_t>(host_.total_bytes()); }

 private:
  Arena device_{Arena::Backing::counted};
  Arena host_{Arena::Backing::counted};
};

/// Every purpose and backward pass with one slot and three, and every policy with three.
std::vector<StageOptions> each_options() {
  std::vector<StageOptions> result;
  for (const auto purpose : {StageOptions::Purpose::train, StageOptions::Purpose::evaluate}) {
    for (const auto backward : {StageOptions::Backward::fused, StageOptions::Backward::split}) {
      for (const int slots : {1, 3}) {
        StageOptions options = options_for(3, 5, slots);
        options.purpose = purpose;
        options.backward = backward;
        result.push_back(options);
      }
    }
  }
  for (const char* recompute : {"full", "every:2", "every:9", "selective"}) {
    for (const auto backward : {StageOptions::Backward::fused, StageOptions::Backward::split}) {
      StageOptions options = options_for(3, 5, 3);
      options.backward = backward;
      options.recompute = *model::recompute_named(recompute);
      result.push_back(options);
      options.head_chunks = 4;
      result.push_back(options);
      options.activations_on_host = true;
      result.push_back(options);
    }
  }
  for (const auto purpose : {StageOptions::Purpose::train, StageOptions::Purpose::evaluate}) {
    StageOptions options = options_for(3, 5, 2);
    options.purpose = purpose;
    options.activations_on_host = true;
    result.push_back(options);
  }
  for (const int head_chunks : {2, 15}) {
    StageOptions options = options_for(3, 5, 3);
    options.head_chunks = head_chunks;
    result.push_back(options);
    options.purpose = StageOptions::Purpose::evaluate;
    result.push_back(options);
  }
  return result;
}

/// Bytes per token, in 16-bit storage: what each slot keeps of `layers` blocks, and what is there
/// once.
struct Expected {
  std::int64_t kept;
  std::int64_t shared;
};

}  // namespace

TEST_CASE("bytes that are counted are those the arena hands out", "[stage_memory]") {
  ParallelHooks hooks;
  fourfold::harness::Sweep sweep(5);
  const std::vector<StageOptions> all_options = each_options();
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const double dropout : {0.0, 0.1}) {
      const Architecture config = small(family, dropout);
      for (const UnitRange units :
           {UnitRange{0, 5}, UnitRange{0, 1}, UnitRange{0, 3}, UnitRange{2, 3}, UnitRange{3, 5}}) {
        for (const DType compute : {DType::f32, DType::bf16}) {
          for (const StageOptions& options : all_options) {
            if (!sweep.takes_next()) {
              continue;
            }
            Model made(config, units, options, hooks, compute);
            fourfold::harness::SharedArena bare;
            const model::Parameters parameters(model::parameter_table(config, units), compute,
                                               bare);
            const Taken predicted(config, units, compute, options);
            for (const MemoryUse use : all_uses) {
              CHECK(predicted.on_device(use) ==
                    static_cast<std::int64_t>(made.arena.bytes(use) - bare.bytes(use)));
            }
            CHECK(predicted.on_host() == static_cast<std::int64_t>(made.host.total_bytes()));
          }
        }
      }
    }
  }
  CHECK(sweep.cases() == 40 * 38);
}

TEST_CASE("a layer keeps the published minimal set of activations", "[stage_memory]") {
  // Bytes per token and layer with 16-bit storage and exact attention in linear memory: gpt2
  // 32 h + 4 a + 16, llama (12 + 4 g) h + 6 f + 4 a + 8 with g = kv_heads / heads.
  const auto bytes_per_layer = [](Architecture config) {
    StageOptions options = options_for(4, 1024);
    const auto activations = [&](std::int64_t layers) {
      config.layers = layers;
      return Taken(config, model::all_units(config), DType::bf16, options)
          .on_device(MemoryUse::activations);
    };
    return (activations(3) - activations(2)) / 4096;
  };
  CHECK(bytes_per_layer(model::preset("gpt2-124m")) == 32 * 768 + 4 * 12 + 16);
  CHECK(bytes_per_layer(model::preset("gpt2-1558m")) == 32 * 1600 + 4 * 25 + 16);
  CHECK(bytes_per_layer(model::preset("llama-3-8b")) == 13 * 4096 + 6 * 14336 + 4 * 32 + 8);
}

TEST_CASE("policies of recomputation keep what they say", "[stage_memory]") {
  constexpr std::int64_t tokens = 4096;
  constexpr std::int64_t layers = 10;
  constexpr int slots = 3;
  const auto bytes_per_token = [](Architecture config, const char* recompute, bool split) {
    config.layers = layers;
    StageOptions options = options_for(4, 1024, slots);
    options.recompute = *model::recompute_named(recompute);
    options.backward = split ? StageOptions::Backward::split : StageOptions::Backward::fused;
    const std::int64_t bytes = Taken(config, model::all_units(config), DType::bf16, options)
                                   .on_device(MemoryUse::activations);
    CHECK(bytes % tokens == 0);
    return bytes / tokens;
  };
  const auto check = [&](const char* preset, std::int64_t all, bool split, const char* recompute,
                         const Expected& expected) {
    CAPTURE(preset, split, recompute);
    const Architecture config = model::preset(preset);
    CHECK(bytes_per_token(config, recompute, split) == bytes_per_token(config, "none", split) +
                                                           slots * (expected.kept - layers * all) +
                                                           expected.shared);
  };

  // gpt2 with a heads: 32 h and statistics of 4 a + 16 bytes. Ten blocks are four groups of three.
  const auto gpt2 = [&](const char* preset, std::int64_t h, std::int64_t a) {
    const std::int64_t statistics = 4 * a + 16;
    const std::int64_t all = 32 * h + statistics;
    check(preset, all, false, "full", {layers * 2 * h, 30 * h + statistics});
    check(preset, all, false, "every:3", {4 * 2 * h, 3 * (30 * h + statistics) + 2 * 2 * h});
    check(preset, all, false, "every:64", {2 * h, layers * (30 * h + statistics) + 9 * 2 * h});
    check(preset, all, false, "selective", {layers * 18 * h, 14 * h + statistics});
    check(preset, all, true, "full", {layers * 16 * h, 16 * h + statistics});
    check(preset, all, true, "selective", {layers * 32 * h, statistics});
  };
  gpt2("gpt2-124m", 768, 12);
  gpt2("gpt2-1558m", 1600, 25);

  // llama-3-8b: (12 + 4 g) h + 6 f and statistics of 4 a + 8 bytes, g = 1/4.
  constexpr std::int64_t h = 4096;
  constexpr std::int64_t f = 14336;
  constexpr std::int64_t statistics = 4 * 32 + 8;
  constexpr std::int64_t all = 13 * h + 6 * f + statistics;
  const char* const llama = "llama-3-8b";
  check(llama, all, false, "full", {layers * 2 * h, all - 2 * h});
  check(llama, all, false, "every:5", {2 * 2 * h, 5 * (all - 2 * h) + 4 * 2 * h});
  check(llama, all, false, "selective", {layers * (7 * h + 4 * f), 6 * h + 2 * f + statistics});
  check(llama, all, true, "full", {layers * (8 * h + 6 * f), 5 * h + statistics});
}

TEST_CASE("on the host lies what blocks keep, and on the device two blocks' worth of it",
          "[stage_memory]") {
  // gpt2 in 16 bits, bytes per token: 32 h + 4 a + 16 of a block, 2 h of them its input; gradients
  // that wait are 18 h. The first block's input stays on the device.
  constexpr std::int64_t h = 768;
  constexpr std::int64_t all = 32 * h + 4 * 12 + 16;
  constexpr std::int64_t tokens = 4096;
  constexpr int slots = 3;
  struct Row {
    const char* recompute;
    bool split;
    std::int64_t layers;
    std::int64_t host;    // of a slot
    std::int64_t device;  // in turn
  };
  for (const Row& row : std::vector<Row>{
           {"none", false, 10, 10 * all - 2 * h, 2 * all},
           {"none", false, 3, 3 * all - 2 * h, 2 * all},
           {"none", false, 2, 2 * all - 2 * h, 2 * all - 2 * h},
           {"none", false, 1, all - 2 * h, all - 2 * h},
           {"selective", false, 10, 10 * 18 * h - 2 * h, 2 * 18 * h},
           {"full", false, 10, 9 * 2 * h, 2 * 2 * h},
           {"every:3", false, 10, 3 * 2 * h, 2 * 2 * h},
           {"every:5", false, 10, 2 * h, 2 * h},
           {"every:64", false, 10, 0, 0},
           {"none", true, 10, 10 * (all + 18 * h) - 2 * h, 2 * (all + 18 * h)},
           {"full", true, 10, 10 * (16 + 18) * h - 2 * h, 2 * (16 + 18) * h},
           {"every:3", true, 10, 10 * (14 + 18) * h + 3 * 2 * h, 4 * (14 + 18) * h + 2 * 2 * h}}) {
    CAPTURE(row.recompute, row.split, row.layers);
    Architecture config = model::preset("gpt2-124m");
    config.layers = row.layers;
    StageOptions options = options_for(4, 1024, slots);
    options.recompute = *model::recompute_named(row.recompute);
    options.backward = row.split ? StageOptions::Backward::split : StageOptions::Backward::fused;
    const auto taken = [&] {
      return Taken(config, model::all_units(config), DType::bf16, options);
    };
    const std::int64_t without = taken().on_device(MemoryUse::activations);
    CHECK(taken().on_host() == 0);
    options.activations_on_host = true;
    CHECK(taken().on_host() == slots * tokens * row.host);
    CHECK(taken().on_device(MemoryUse::activations) ==
          without - taken().on_host() + tokens * row.device);
    options.purpose = StageOptions::Purpose::evaluate;
    CHECK(taken().on_host() == 0);
  }
}

TEST_CASE("a head in chunks has the logits of one chunk, once for all slots", "[stage_memory]") {
  const Architecture config = model::preset("gpt2-124m");
  constexpr int slots = 3;
  const auto activations = [&](UnitRange units, int head_chunks) {
    StageOptions options = options_for(4, 1024, slots);
    options.head_chunks = head_chunks;
    return Taken(config, units, DType::bf16, options).on_device(MemoryUse::activations);
  };
  const UnitRange all = model::all_units(config);
  constexpr std::int64_t row_bytes = 50257 * 2;
  const std::vector<std::pair<int, std::int64_t>> cases{{2, 2048}, {3, 1366}, {8, 512}, {4096, 1}};
  for (const auto& [chunks, rows] : cases) {
    CAPTURE(chunks);
    CHECK(activations(all, 1) - activations(all, chunks) == (slots * 4096 - rows) * row_bytes);
  }
  CHECK(activations({0, 13}, 8) == activations({0, 13}, 1));  // another stage has the head
}

TEST_CASE("in tiles and 16 bits the widest input gradient is summed in f32", "[stage_memory]") {
  const Architecture config = model::preset("llama-3-8b");
  const auto workspace = [&](UnitRange units, DType compute, bool tiles, int head_chunks) {
    StageOptions options = options_for(4, 1024);
    options.tiles = tiles;
    options.head_chunks = head_chunks;
    return Taken(config, units, compute, options).on_device(MemoryUse::workspace);
  };
  const auto more = [&](UnitRange units, DType compute, int head_chunks) {
    return workspace(units, compute, true, head_chunks) -
           workspace(units, compute, false, head_chunks);
  };
  const int head = model::all_units(config).end - 1;
  CHECK(more({0, 3}, DType::bf16, 1) == 4096L * 14336 * 4);
  CHECK(more({0, 3}, DType::f32, 1) == 0);
  CHECK(more({0, 1}, DType::bf16, 1) == 0);
  CHECK(more({head, head + 1}, DType::f16, 1) == 4096L * 4096 * 4);
  CHECK(more({head, head + 1}, DType::f16, 8) == 512L * 4096 * 4);
}
