// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What comparing meshes proves: one column of one call of one product that counts twice is found
/// in the step in which it happens, at any step, and only there; sound meshes pass.
#include "matmul_fault.hpp"
#include "tiny_run.hpp"

#include <fourfold/data/dataset.hpp>
#include <fourfold/io/token_file_writer.hpp>
#include <fourfold/train/mesh_verification.hpp>
#include <fourfold/train/training_data.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

using namespace fourfold;
using test::MatmulFault;
using test::Product;
using test::TinyRun;
using train::VerificationStep;

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
  return {mesh.str(), tiny.config(steps, "none", options).config, mesh};
}

train::Tolerances tolerances_in(const std::string& precision) {
  return train::tolerances_for(dtype_from_name(precision).value());
}

/// Spoils one column of one call of `product` in every `every`-th step from the second on, on ranks
/// and in calls that `draw` picks.
class Faults {
 public:
  Faults(Product product, int ranks, int every, std::uint32_t seed)
      : product_(product), ranks_(ranks), every_(every), state_(seed) {}

  void before(const VerificationStep& now) {
    if (now.of_reference) {
      note_calls(now.step);
      MatmulFault::disarm();
    } else if (now.step == 0) {
      MatmulFault::count_only();
    } else if (now.step % every_ == 0) {
      arm();
    }
  }

  /// Those with a fault, counted from 1.
  const std::vector<std::int64_t>& spoiled_steps() const noexcept { return spoiled_; }

 private:
  void note_calls(std::int64_t step) {
    for (int rank = 0; step == 0 && rank < ranks_; ++rank) {
      calls_.push_back(MatmulFault::calls(product_, rank));
    }
    if (armed_ && MatmulFault::happened()) {
      spoiled_.push_back(step + 1);
    }
    armed_ = false;
  }

  void arm() {
    const auto rank = static_cast<int>(draw(ranks_));
    const std::int64_t calls = calls_[static_cast<std::size_t>(rank)];
    if (calls > 0) {
      MatmulFault::arm(product_, rank, draw(calls), draw(1 << 20));
      armed_ = true;
    }
  }

  std::int64_t draw(std::int64_t below) {
    state_ = state_ * 1664525U + 1013904223U;
    return static_cast<std::int64_t>(state_ >> 8) % below;
  }

  Product product_;
  int ranks_;
  int every_;
  std::uint32_t state_;
  std::vector<std::int64_t> calls_;  ///< of a step, per rank
  std::vector<std::int64_t> spoiled_;
  bool armed_ = false;
};

struct Found {
  std::vector<std::int64_t> spoiled;
  train::MeshComparison comparison;
};

Found find_faults(const TinyRun& tiny, const std::string& family, const std::string& precision,
                  const Case& each, Product product, int every, std::uint32_t seed) {
  Faults faults(product, static_cast<int>(each.first.ranks()), every, seed);
  Found found;
  found.comparison = train::compare_meshes(
      run_on(tiny, family, precision), run_on(tiny, family, precision, each), steps,
      tolerances_in(precision), [&](const VerificationStep& now) { faults.before(now); });
  found.spoiled = faults.spoiled_steps();
  return found;
}

/// The products that a mesh makes in a step.
constexpr std::array all_products{Product::linear,
                                  Product::linear_gelu,
                                  Product::backward_input,
                                  Product::backward_input_gelu,
                                  Product::backward_weight,
                                  Product::tile,
                                  Product::tile_backward_input,
                                  Product::tile_backward_weight};

}  // namespace

TEST_CASE("sound meshes pass at every step, in every precision", "[mesh_faults]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string precision = GENERATE("f32", "bf16", "f16");
  const TinyRun tiny(family);
  for (const std::size_t which : {5U, 6U, 7U, 9U}) {
    const Case& each = cases[which];
    const train::MeshComparison result = train::compare_meshes(
        run_on(tiny, family, precision), run_on(tiny, family, precision, each), steps,
        tolerances_in(precision));
    CAPTURE(family, precision, each.first.str(), result.largest.rounding);
    CHECK(result.first_difference.value_or("") == "");
    CHECK(result.steps == steps);
    CHECK(result.largest.rounding > 0);
    CHECK(result.largest.loss < (precision == "f32" ? 1e-6 : 1e-4));
  }
}

TEST_CASE("a column that counts twice is found in its step, and only there", "[mesh_faults]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  std::size_t kinds = 0;
  for (const std::size_t which : {1U, 7U, 9U}) {  // dp; tiles; all axes but dp
    for (const Product product : all_products) {
      const Found found = find_faults(tiny, family, "f32", cases[which], product, 3, 1);
      if (found.spoiled.empty()) {
        continue;  // no such product on this mesh
      }
      ++kinds;
      CAPTURE(family, cases[which].first.str(), name(product),
              found.comparison.first_difference.value_or("nothing"));
      CHECK(found.spoiled == std::vector<std::int64_t>{4, 7, 10, 13, 16, 19});
      CHECK(found.comparison.differing_steps == found.spoiled);
    }
  }
  CHECK(kinds == (family == "gpt2" ? 13 : 9));
}

// One call of the many that a step adds up is not always more than 16 bits round.
TEST_CASE("in 16 bits a column that counts twice is often found, and never elsewhere",
          "[mesh_faults]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  for (const Product product : {Product::backward_weight, Product::backward_input}) {
    const Found found = find_faults(tiny, family, "bf16", cases[1], product, 3, 1);
    CAPTURE(family, name(product));
    CHECK(std::ranges::includes(found.spoiled, found.comparison.differing_steps));
    CHECK(2 * found.comparison.differing_steps.size() >= found.spoiled.size());
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
  for (const std::int64_t step : {4, 16, 20}) {
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
        train::compare_meshes(reference, other, steps, tolerances_in(precision));
    CAPTURE(precision, step, result.first_difference.value_or(""));
    CHECK(result.differing_steps == std::vector<std::int64_t>{step});
  }
}

/// All of it, as a table: hours. FOURFOLD_FAULT_SWEEP=f32 (or bf16, f16), =PRECISION:SEED for
/// others.
TEST_CASE("every product on every mesh at every step", "[.][mesh_faults_sweep]") {
  const char* const wanted = std::getenv("FOURFOLD_FAULT_SWEEP");
  REQUIRE(wanted != nullptr);
  const std::string text = wanted;
  const std::string precision = text.substr(0, text.find(':'));
  const std::uint32_t seed =
      text == precision ? 1
                        : static_cast<std::uint32_t>(std::stoul(text.substr(text.find(':') + 1)));
  fmt::print("| model | mesh | product | found | missed at steps |\n|---|---|---|---|---|\n");
  for (const std::string family : {"gpt2", "llama"}) {
    const TinyRun tiny(family);
    for (const Case& each : cases) {
      for (const Product product : all_products) {
        const Found found = find_faults(tiny, family, precision, each, product, 1, seed);
        if (found.spoiled.empty()) {
          continue;
        }
        std::vector<std::int64_t> missed;
        std::ranges::set_difference(found.spoiled, found.comparison.differing_steps,
                                    std::back_inserter(missed));
        fmt::print("| {} | {} {} | {} | {} of {} | {} |\n", family, each.first.str(),
                   fmt::join(each.second, " "), name(product), found.spoiled.size() - missed.size(),
                   found.spoiled.size(), fmt::join(missed, " "));
        std::fflush(stdout);
      }
    }
  }
}
