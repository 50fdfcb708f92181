// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What comparing meshes proves: one column of one call of one product that counts twice is found
/// in the step in which it happens, at any step, in any precision, and only there; sound meshes
/// pass.
#include "matmul_fault.hpp"
#include "run/tiny_run.hpp"
#include "verify/mesh_walk.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/io/token_file_writer.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/mesh_verification.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace fourfold;
using test::MatmulFault;
using test::Product;
using test::TinyRun;

namespace {

using Options = std::vector<std::string>;
using Case = std::pair<comm::MeshShape, Options>;

constexpr int steps = 20;

/// Twelve meshes: every axis, and what cuts, recomputes or moves a step otherwise.
const std::vector<Case> cases{
    {{}, {"train.recompute=full"}},
    {{.dp = 8}, {}},
    {{.tp = 8}, {}},
    {{.cp = 4}, {}},
    {{.pp = 4}, {"mesh.schedule=zb-v", "mesh.stage_layers=[1,1,1,1,1,1,1,1]"}},
    {{.dp = 2, .tp = 4}, {"mesh.zero=3"}},
    {{.dp = 2, .cp = 2, .tp = 2}, {"train.recompute=full", "train.head_chunks=3"}},
    {{.pp = 2, .dp = 2, .tp = 2}, {"mesh.schedule=1f1b", "mesh.zero=3", "mesh.tile_linear=3"}},
    {{.pp = 2, .dp = 2}, {"mesh.schedule=gpipe", "mesh.zero=3", "train.recompute=selective"}},
    {{.pp = 2, .cp = 2, .tp = 2}, {"mesh.schedule=interleaved", "mesh.chunks=4"}},
    {{.pp = 2, .dp = 2, .cp = 2}, {"mesh.schedule=zb-h1", "mesh.zero=3", "train.head_chunks=3"}},
    {{.cp = 2, .tp = 2}, {"mesh.context_mode=ulysses", "offload.optimizer=cpu"}},
};

/// Eight layers and eight heads, dropout, clipping that bites.
train::RunOnMesh run_on(const TinyRun& tiny, const std::string& family,
                        const std::string& precision, const Case& each = {}) {
  const auto& [mesh, more] = each;
  Options options{"model.layers=8",          "model.heads=8",
                  "model.context=16",        "model.dropout=0.1",
                  "train.micro_batch=1",     "optim.lr=1e-3",
                  "optim.warmup_steps=0",    "optim.clip_norm=0.5",
                  "mesh.dp_bucket_mb=0.005", "train.precision=" + precision};
  if (family == "llama") {
    options.emplace_back("model.kv_heads=2");
  }
  options.insert(options.end(),
                 {fmt::format("mesh.pp={}", mesh.pp), fmt::format("mesh.dp={}", mesh.dp),
                  fmt::format("mesh.cp={}", mesh.cp), fmt::format("mesh.tp={}", mesh.tp)});
  options.insert(options.end(), more.begin(), more.end());
  return {train::resolve_run(tiny.config(steps, "none", options), mesh.ranks()), mesh.str()};
}

train::Tolerances tolerances_of(const train::RunOnMesh& run) {
  return train::tolerances_for(run.config);
}

constexpr std::array all_products{Product::linear,
                                  Product::linear_gelu,
                                  Product::backward_input,
                                  Product::backward_input_gelu,
                                  Product::backward_weight,
                                  Product::tile,
                                  Product::tile_backward_input,
                                  Product::tile_backward_weight,
                                  Product::attention_scores,
                                  Product::attention_output,
                                  Product::query_gradient,
                                  Product::key_gradient,
                                  Product::value_gradient,
                                  Product::softmax_gradient,
                                  Product::scores_again};

/// Calls of one product in a step, by rank.
struct Calls {
  Product product;
  std::vector<std::int64_t> of_rank;
};

/// Of all products that a run makes.
std::vector<Calls> count_calls(const train::RunOnMesh& run) {
  train::MeshWalk walk(run);
  MatmulFault::count_only();
  walk.step();
  MatmulFault::disarm();
  std::vector<Calls> result;
  for (const Product product : all_products) {
    Calls calls{product, {}};
    for (int rank = 0; rank < static_cast<int>(run.mesh.ranks()); ++rank) {
      calls.of_rank.push_back(MatmulFault::calls(product, rank));
    }
    if (std::ranges::any_of(calls.of_rank, [](std::int64_t count) { return count > 0; })) {
      result.push_back(calls);
    }
  }
  return result;
}

/// Spoils one column of one call of one product in a step, on ranks and in calls that it draws.
class Faults {
 public:
  explicit Faults(std::uint32_t seed) : state_(seed) {}

  void arm(const Calls& calls) {
    std::size_t rank = 0;
    do {
      rank = static_cast<std::size_t>(draw(std::ssize(calls.of_rank)));
    } while (calls.of_rank[rank] == 0);
    const std::int64_t call = draw(calls.of_rank[rank]);
    MatmulFault::arm(calls.product, static_cast<int>(rank), call, draw(1 << 20));
  }

 private:
  std::int64_t draw(std::int64_t below) {
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<std::int64_t>(state_ >> 8) % below;
  }

  std::uint32_t state_;
};

struct SpoiledStep {
  Product product;
  bool changed = false;  ///< whether the fault changed a bit
  train::MatmulErrors errors;
};

/// Spoils one product after the other, from number `first` on, one in each step. What the check of
/// products says is the same beside a reference.
std::vector<SpoiledStep> spoil_each_step(const train::RunOnMesh& run,
                                         const std::vector<Calls>& calls, std::size_t first,
                                         std::size_t last_step, std::uint32_t seed) {
  Faults faults(seed);
  std::vector<SpoiledStep> result;
  train::MeshWalk walk(run, train::Tolerances{}.product);
  for (std::size_t step = 0; step < last_step; ++step) {
    const Calls& of_product = calls[(first + step) % calls.size()];
    faults.arm(of_product);
    const train::MatmulErrors errors = walk.step().products;
    result.push_back({of_product.product, MatmulFault::happened(), errors});
    MatmulFault::disarm();
  }
  return result;
}

}  // namespace

TEST_CASE("sound meshes pass at every step, in every precision", "[mesh_faults]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string precision = GENERATE("f32", "bf16", "f16");
  const TinyRun tiny(family);
  for (const std::size_t which : family == "gpt2" ? std::array{6U, 7U} : std::array{5U, 9U}) {
    const Case& each = cases[which];
    const train::MeshComparison result = train::compare_meshes(
        run_on(tiny, family, precision), run_on(tiny, family, precision, each), steps,
        tolerances_of(run_on(tiny, family, precision)));
    CAPTURE(family, precision, each.first.str(), result.largest.rounding);
    CHECK(result.first_difference.value_or("") == "");
    CHECK(result.steps == steps);
    CHECK(result.largest.rounding > 0);
    CHECK(result.largest.product > 0.01);
    CHECK(result.checked_products > steps * 8 * 8 * 4);
    CHECK(result.largest.loss < (precision == "f32" ? 1e-6 : 1e-4));
  }
}

TEST_CASE("a column that counts twice is found, whatever product it is of, in every precision",
          "[mesh_faults]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string precision = GENERATE("f32", "bf16", "f16");
  const TinyRun tiny(family);
  std::size_t kinds = 0;
  for (const std::size_t which : {1U, 7U, 9U, 11U}) {  // dp; tiles; all axes but dp; ulysses
    const train::RunOnMesh run = run_on(tiny, family, precision, cases[which]);
    const std::vector<Calls> calls = count_calls(run);
    kinds += calls.size();
    for (const SpoiledStep& step : spoil_each_step(run, calls, 0, calls.size(), 1)) {
      CAPTURE(family, precision, run.name, name(step.product), step.errors.largest);
      CHECK(step.errors.products > 0);
      CHECK(step.changed == !step.errors.first_wrong.empty());
    }
  }
  CHECK(kinds == (family == "gpt2" ? 46 : 40));
}

TEST_CASE("a faulty product fails its step beside the reference, by name, and no other step",
          "[mesh_faults]") {
  const std::string precision = GENERATE("f32", "bf16");
  const TinyRun tiny("gpt2");
  const train::RunOnMesh run = run_on(tiny, "gpt2", precision, cases[9]);
  const std::vector<Calls> calls = count_calls(run);
  for (const auto& [product, words] :
       {std::pair(Product::backward_weight, "the product of .* \\(weight gradient\\)"),
        std::pair(Product::attention_output, "the attention of layer [0-7] \\(forward\\)")}) {
    Faults faults(1);
    const train::MeshComparison result =
        train::compare_meshes(run_on(tiny, "gpt2", precision), run, 8, tolerances_of(run),
                              [&](bool of_reference, std::int64_t step) {
                                if (of_reference) {
                                  MatmulFault::disarm();
                                } else if (step % 3 == 0) {
                                  faults.arm(*std::ranges::find(calls, product, &Calls::product));
                                }
                              });
    CAPTURE(precision, name(product));
    CHECK(result.differing_steps == std::vector<std::int64_t>{1, 4, 7});
    CHECK(result.largest.product > 50);
    CHECK_THAT(result.first_difference.value_or("nothing"),
               Catch::Matchers::Matches(
                   fmt::format("step 1: rank [0-7]: {}, call [0-9]+ of the step: .* differs by .* "
                               "times what rounding makes there",
                               words)));
  }
}

TEST_CASE("a mesh that trains on one other token is found in the step that has it",
          "[mesh_faults]") {
  const std::string precision = GENERATE("f32", "bf16");
  const TinyRun tiny("llama");
  const train::RunOnMesh reference = run_on(tiny, "llama", precision);
  const data::TokenDataset dataset(
      reference.config.data.train,
      train::dataset_options(reference.config, data::TokenDataset::Order::shuffled));
  for (const std::int64_t step : {4, 20}) {
    const std::int64_t context = reference.config.model.context;
    const std::int64_t sample = (step - 1) * reference.config.train.global_batch + 3;
    std::vector<std::int32_t> tokens(3001);
    dataset.files()[0].read(0, tokens, 53);
    std::int32_t& token = tokens[static_cast<std::size_t>(dataset.position(sample) * context + 7)];
    token = (token + 11) % 53;
    const std::string changed = (tiny.folder() / fmt::format("changed{}", step)).string();
    io::TokenFileWriter writer(changed, io::megatron_type(53));
    writer.add_document(tokens);
    writer.publish();
    train::RunOnMesh other = run_on(tiny, "llama", precision, {{.dp = 2}, {}});
    other.config.data.train = {changed};
    const train::MeshComparison result =
        train::compare_meshes(reference, other, steps, tolerances_of(other));
    CAPTURE(precision, step, result.first_difference.value_or(""));
    CHECK(result.differing_steps == std::vector<std::int64_t>{step});
  }
}

/// Larger and odd sizes, in the place of the small ones. RoPE wants an even head.
Case in_large(Case each, const std::string& family) {
  const int hidden = each.first.tp == 8 ? 128 : family == "llama" ? 112 : 104;
  each.second.insert(each.second.end(),
                     {fmt::format("model.hidden={}", hidden), "model.context=64",
                      fmt::format("train.micro_batch={}", each.first.dp == 8 ? 1 : 2)});
  return each;
}

/// What FOURFOLD_FAULT_SWEEP says: PRECISION[:SEED[:small or large[:FAMILY]]].
struct Sweep {
  Sweep() {
    const char* const wanted = std::getenv("FOURFOLD_FAULT_SWEEP");
    REQUIRE(wanted != nullptr);
    std::vector<std::string> words(1);
    for (const char c : std::string_view(wanted)) {
      if (c == ':') {
        words.emplace_back();
      } else {
        words.back().push_back(c);
      }
    }
    precision = words[0];
    seed = static_cast<std::uint32_t>(words.size() > 1 ? std::stoul(words[1]) : 1);
    is_large = words.size() > 2 && words[2] == "large";
    only_family = words.size() > 3 ? words[3] : "";
  }
  /// Calls use(family, tiny, mesh, row) for each mesh of each family; row begins a table's row.
  template <class Use>
  void for_each(const Use& use) const {
    for (const std::string family : {"gpt2", "llama"}) {
      if (!only_family.empty() && family != only_family) {
        continue;
      }
      const TinyRun tiny(family);
      for (const Case& each : cases) {
        const std::string row =
            fmt::format("| {} | {} {} |", family, each.first.str(), fmt::join(each.second, " "));
        try {
          use(tiny, family, is_large ? in_large(each, family) : each, row);
        } catch (const UserError& error) {
          fmt::print("{} does not start: {} |\n", row, error.what());
        }
        std::fflush(stdout);
      }
    }
  }

  std::string precision;
  std::uint32_t seed = 1;
  bool is_large = false;
  std::string only_family;  ///< empty: both
};

TEST_CASE("every product on every mesh at every step", "[.][mesh_faults_sweep]") {
  const Sweep sweep;
  fmt::print(
      "| model | mesh | product | found | least error | missed at steps |\n"
      "|---|---|---|---|---|---|\n");
  sweep.for_each([&](const TinyRun& tiny, const std::string& family, const Case& each,
                     const std::string& row) {
    const train::RunOnMesh run = run_on(tiny, family, sweep.precision, each);
    const std::vector<Calls> calls = count_calls(run);
    std::map<Product, std::vector<std::int64_t>> missed;
    std::map<Product, int> spoiled;
    std::map<Product, double> least;
    for (std::size_t first = 0; first < calls.size(); ++first) {
      const std::uint32_t seed = sweep.seed * 1000 + static_cast<std::uint32_t>(first);
      std::int64_t number = 0;
      for (const SpoiledStep& step : spoil_each_step(run, calls, first, steps, seed)) {
        ++number;
        if (!step.changed) {
          CHECK(step.errors.first_wrong.empty());
          continue;
        }
        ++spoiled[step.product];
        double& error = least.try_emplace(step.product, INFINITY).first->second;
        error = std::min(error, step.errors.largest);
        if (step.errors.first_wrong.empty()) {
          missed[step.product].push_back(number);
        }
      }
    }
    for (const auto& [product, count] : spoiled) {
      std::ranges::sort(missed[product]);
      fmt::print("{} {} | {} of {} | {:.3g} | {} |\n", row, name(product),
                 count - std::ssize(missed[product]), count, least[product],
                 fmt::join(missed[product], " "));
    }
  });
}

TEST_CASE("every sound mesh beside the reference", "[.][mesh_faults_sound]") {
  const Sweep sweep;
  fmt::print(
      "| model | mesh | differing steps | products | rounding | gradients | loss | weights | "
      "products checked |\n|---|---|---|---|---|---|---|---|---|\n");
  sweep.for_each([&](const TinyRun& tiny, const std::string& family, const Case& each,
                     const std::string& row) {
    const train::RunOnMesh run = run_on(tiny, family, sweep.precision, each);
    runfile::RunConfig on_one = run.config;
    on_one.mesh = run_on(tiny, family, sweep.precision).config.mesh;
    on_one.train.recompute = {};
    on_one.offload = {};
    const train::RunOnMesh reference{train::resolve_run({.config = on_one}, 1), run.name};
    const train::MeshComparison result =
        train::compare_meshes(reference, run, steps, tolerances_of(run));
    fmt::print("{} {} | {:.2f} | {:.2f} | {:.1e} | {:.1e} | {:.1e} | {} |\n", row,
               result.differing_steps.size(), result.largest.product, result.largest.rounding,
               result.largest.gradient, result.largest.loss, result.largest.weight,
               result.checked_products);
    CHECK(result.first_difference.value_or("") == "");
  });
}
