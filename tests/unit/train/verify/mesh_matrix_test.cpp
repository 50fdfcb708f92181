// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every mesh of up to eight ranks, every schedule and every way of context parallelism against one
/// rank: initial bits, losses, the gradient and the new weights of every logical tensor. What else
/// a run may do on them: mesh_table_test.cpp.
#include "mesh_traces.hpp"
#include "run/tiny_run.hpp"

#include <fourfold/train/mesh_verification.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fmt/format.h>

#include <vector>

using namespace fourfold;
using test::joined;
using test::Options;
using test::TinyRun;

namespace {

constexpr int steps = 5;

/// Eight layers and eight heads (llama: on two key/value heads), so that any axis may be 8; a
/// vocabulary of 53, which nothing divides; dropout; clipping that bites.
Options model_options(const std::string& family) {
  Options options{"model.layers=8",       "model.heads=8",       "model.context=16",
                  "model.dropout=0.1",    "train.micro_batch=1", "optim.lr=1e-3",
                  "optim.warmup_steps=0", "optim.clip_norm=0.5", "mesh.dp_bucket_mb=0.005"};
  if (family == "llama") {
    options.push_back("model.kv_heads=2");
  }
  return options;
}

train::RunOnMesh run_on(const TinyRun& tiny, const std::string& family, const comm::MeshShape& mesh,
                        const Options& more = {}) {
  const Options options = joined(joined(model_options(family), test::mesh_options(mesh)), more);
  return {train::resolve_run(tiny.config(steps, "none", options), mesh.ranks()), mesh.str()};
}

test::MeshTrace trace(const TinyRun& tiny, const std::string& family, const comm::MeshShape& mesh,
                      const Options& more = {}) {
  return test::trace_mesh(run_on(tiny, family, mesh, more).config, mesh, steps);
}

void check_against(const test::MeshTrace& reference, const test::MeshTrace& other) {
  const train::MeshComparison result = test::compare(reference, other, {});
  CAPTURE(other.mesh.str(), result.largest.loss, result.largest.gradient, result.largest.weight);
  CHECK(result.same_initial_weights);
  CHECK(result.ranks_agree);
  CHECK(result.first_difference.value_or("") == "");
  CHECK(result.largest.loss <= 1e-5);  // at every step
  CHECK(result.largest.gradient <= 1e-4);
}

/// Every way to write at most `most` ranks as pp x dp x cp x tp.
std::vector<comm::MeshShape> meshes_up_to(int most) {
  std::vector<comm::MeshShape> meshes;
  for (int pp = 1; pp <= most; ++pp) {
    for (int dp = 1; pp * dp <= most; ++dp) {
      for (int cp = 1; pp * dp * cp <= most; ++cp) {
        for (int tp = 1; pp * dp * cp * tp <= most; ++tp) {
          meshes.push_back({pp, dp, cp, tp});
        }
      }
    }
  }
  return meshes;
}

/// The odd prime among a mesh's degrees, or 1: at most one fits into eight ranks.
int odd_factor(const comm::MeshShape& mesh) {
  for (const int prime : {3, 5, 7}) {
    if (mesh.ranks() % prime == 0) {
      return prime;
    }
  }
  return 1;
}

/// Heads, samples and tokens that degrees with this odd factor can cut. (llama: one key/value head
/// for all.)
Options sizes_for(int odd) {
  if (odd == 1) {
    return {};
  }
  const int heads = odd == 3 ? 6 : odd;
  return {fmt::format("model.heads={}", heads), "model.kv_heads=\"auto\"",
          fmt::format("model.hidden={}", 4 * heads), fmt::format("model.context={}", 4 * heads),
          fmt::format("train.global_batch={}", heads)};
}

}  // namespace

TEST_CASE("every mesh of up to eight ranks computes what one rank does", "[matrix]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  int compared = 0;
  for (const int odd : {1, 3, 5, 7}) {
    Options sizes = sizes_for(odd);
    if (odd > 1 && family == "llama") {
      sizes.emplace_back("model.kv_heads=1");
    }
    const test::MeshTrace one = trace(tiny, family, {}, sizes);
    REQUIRE(one.steps.back().loss < one.steps.front().loss);
    for (const comm::MeshShape& mesh : meshes_up_to(8)) {
      if (odd_factor(mesh) == odd && mesh.ranks() > 1) {
        check_against(one, trace(tiny, family, mesh, sizes));
        ++compared;
      }
    }
  }
  CHECK(compared == 62);  // 1 + 4 + 4 + 10 + 4 + 16 + 4 + 20 ways to write 1 .. 8, less the first
}

TEST_CASE("norms of queries and keys are those of one rank on every axis", "[matrix]") {
  const TinyRun tiny("llama");
  const Options normed{"model.qk_norm=true"};
  const train::RunOnMesh one = run_on(tiny, "llama", {}, normed);
  const std::vector<std::pair<comm::MeshShape, Options>> cases{
      {{.tp = 2}, {"mesh.sequence_parallel=false"}},  // each rank has all rows, and its own heads
      {{.tp = 4}, {}},                                // two ranks share a key/value head
      {{.cp = 2}, {"mesh.context_mode=ulysses"}},
      {{.cp = 2}, {"mesh.context_mode=ring"}},
      {{.cp = 2, .tp = 2}, {"train.recompute=selective"}},
      {{.pp = 2}, {"mesh.schedule=zb-v", "train.recompute=full"}},
      {{.pp = 2, .tp = 2}, {"offload.activations=cpu"}},
      {{.dp = 2}, {"mesh.zero=3", "mesh.tile_linear=2"}},
      {{}, {"train.recompute=selective"}},
  };
  for (const auto& [mesh, more] : cases) {
    const Options options = joined(normed, more);
    CAPTURE(mesh.str(), more);
    // Each step from the same weights: four weights of a norm, whose gradient all but cancels in
    // some steps, show how far AdamW carries rounding from one step into the next.
    const train::MeshComparison result =
        train::compare_meshes(one, run_on(tiny, "llama", mesh, options), steps, {});
    CAPTURE(result.largest.gradient, result.largest.rounding);
    CHECK(result.first_difference.value_or("") == "");
    CHECK(result.steps == steps);
    CHECK(result.largest.loss <= 1e-6);
    CHECK(result.largest.gradient <= 1e-5);
  }
}

TEST_CASE("every schedule computes what one rank does", "[matrix]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const test::MeshTrace one = trace(tiny, family, {});
  const Options schedules{"naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"};
  const std::vector<comm::MeshShape> meshes{
      {.pp = 1}, {.pp = 2}, {.pp = 3}, {.pp = 4}, {.pp = 2, .dp = 2, .tp = 2}, {.pp = 2, .cp = 2}};
  for (const std::string& schedule : schedules) {
    for (const comm::MeshShape& mesh : meshes) {
      CAPTURE(schedule, family);
      check_against(one, trace(tiny, family, mesh, {"mesh.schedule=" + schedule}));
    }
  }
}

TEST_CASE("chunks, uneven stages and ragged groups of micro-batches change nothing", "[matrix]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const test::MeshTrace one = trace(tiny, family, {});
  const std::vector<std::pair<comm::MeshShape, Options>> cases{
      {{.pp = 3}, {"mesh.schedule=interleaved"}},  // eight micro-batches in groups of three
      {{.pp = 2}, {"mesh.schedule=interleaved", "mesh.chunks=4"}},
      {{.pp = 2}, {"mesh.stage_layers=[7,1]"}},
      {{.pp = 2}, {"mesh.stage_layers=[0,8]"}},
      {{.pp = 2, .tp = 2}, {"mesh.schedule=zb-v", "mesh.stage_layers=[1,4,3,0]"}},
      {{.pp = 2, .dp = 2}, {"mesh.schedule=zb-h1", "train.micro_batch=2"}},
      {{.pp = 2, .tp = 2}, {"mesh.sequence_parallel=false"}},
  };
  for (const auto& [mesh, options] : cases) {
    CAPTURE(family, options);
    check_against(one, trace(tiny, family, mesh, options));
  }
}

TEST_CASE("every way of context parallelism computes what one rank does", "[matrix]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string mode = GENERATE("ring", "ulysses", "allgather");
  const TinyRun tiny(family);
  const test::MeshTrace one = trace(tiny, family, {});
  const std::vector<comm::MeshShape> meshes{
      {.cp = 2}, {.cp = 4}, {.dp = 2, .cp = 4}, {.cp = 2, .tp = 4}, {.pp = 2, .cp = 2, .tp = 2}};
  for (const comm::MeshShape& mesh : meshes) {
    CAPTURE(mode, family);
    check_against(one, trace(tiny, family, mesh, {"mesh.context_mode=" + mode}));
  }
}

/// Every bit of every step.
void check_same_bits(const test::MeshTrace& a, const test::MeshTrace& b) {
  REQUIRE(a.steps.size() == b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    CHECK(a.steps[i].loss == b.steps[i].loss);
    CHECK(a.steps[i].grad_norm == b.steps[i].grad_norm);
    CHECK(a.steps[i].gradients == b.steps[i].gradients);
    CHECK(a.steps[i].weights == b.steps[i].weights);
  }
}

TEST_CASE("ZeRO changes no bit of a head in chunks", "[matrix]") {
  const TinyRun tiny("gpt2");
  const std::string tied = GENERATE("true", "false");
  const std::string schedule = GENERATE("1f1b", "zb-v");
  test::MeshTrace plain;
  for (const int zero : {0, 1, 2, 3}) {
    CAPTURE(tied, schedule, zero);
    const test::MeshTrace now =
        trace(tiny, "gpt2", {.pp = 2, .dp = 2, .cp = 2},
              {"mesh.dp_reduce=micro_batch", "train.head_chunks=3", "mesh.schedule=" + schedule,
               "model.tie_embeddings=" + tied, fmt::format("mesh.zero={}", zero)});
    if (zero == 0) {
      plain = now;
    } else {
      check_same_bits(plain, now);
    }
  }
}

TEST_CASE("a matrix has at most as many tiles as rows", "[matrix]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const Options small{"model.layers=2", "train.global_batch=2"};
  const Options tiled = joined(small, {"mesh.zero=3", "mesh.tile_linear=40"});  // 32 rows and 64
  check_against(trace(tiny, family, {}, small), trace(tiny, family, {.dp = 2}, tiled));
}

TEST_CASE("compressed gradients of matrices in tiles train as those of whole ones", "[matrix]") {
  const std::string codec = GENERATE("bf16", "int8", "\"lowrank:2\"");
  const TinyRun tiny("llama");
  for (const std::string tied : {"true", "false"}) {
    CAPTURE(codec, tied);
    const auto with = [&](const std::string& tiles) {
      return trace(tiny, "llama", {.pp = 2, .dp = 2, .tp = 2},
                   {"mesh.zero=3", "mesh.dp_reduce=step", "mesh.dp_compress=" + codec,
                    "model.tie_embeddings=" + tied, "mesh.tile_linear=" + tiles});
    };
    const test::MeshTrace whole = with("1");
    const test::MeshTrace tiled = with("3");
    const train::MeshComparison result = test::compare(whole, tiled, {});
    CAPTURE(result.largest.loss);
    CHECK(result.ranks_agree);
    CHECK(result.largest.loss <= 1e-3);  // blocks that share a scale are others
  }
}

TEST_CASE("an optimizer in host memory updates tiles to the bits of one on the device",
          "[matrix]") {
  const TinyRun tiny("gpt2");
  const auto with = [&](const std::string& tier) {
    return trace(
        tiny, "gpt2", {.pp = 2, .dp = 2},
        {"mesh.zero=3", "mesh.tile_linear=3", "train.precision=bf16", "offload.optimizer=" + tier});
  };
  check_same_bits(with("none"), with("cpu"));
}

TEST_CASE("without weights in turn mesh.tile_linear changes no bit", "[matrix]") {
  const TinyRun tiny("llama");
  for (const Options& options :
       {Options{"mesh.zero=2"}, Options{"mesh.zero=3", "mesh.zero3_keep=step"}}) {
    check_same_bits(trace(tiny, "llama", {.dp = 2}, options),
                    trace(tiny, "llama", {.dp = 2}, joined(options, {"mesh.tile_linear=3"})));
  }
}

TEST_CASE("ZeRO in groups that are replicas of each other computes what one rank does",
          "[matrix]") {
  const TinyRun tiny("gpt2");
  const test::MeshTrace one = trace(tiny, "gpt2", {});
  for (const int zero : {1, 2, 3}) {
    for (const int group : {1, 2, 4, 8}) {
      for (const std::string keep : {"micro_batch", "step"}) {
        CAPTURE(zero, group, keep);
        check_against(one, trace(tiny, "gpt2", {.dp = 4, .cp = 2},
                                 {fmt::format("mesh.zero={}", zero), "mesh.zero3_keep=" + keep,
                                  fmt::format("mesh.zero_group={}", group)}));
      }
    }
  }
}
