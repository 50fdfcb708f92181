// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// optim.post_validation: whole runs with it, beside the same runs without.
#include "tiny_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/gradient_norm.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/trainer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::ExitCode;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
namespace train = fourfold::train;

namespace {

using Overrides = std::vector<std::string>;

struct Pair {
  RunTrace plain;
  RunTrace validated;
};

/// The same run twice. Nothing is due between most steps.
Pair both(const TinyRun& tiny, int ranks, int steps, const Overrides& overrides) {
  Overrides all = overrides;
  all.insert(all.end(), {"checkpoint.every_steps=9", "train.eval_every_steps=7"});
  Pair pair;
  pair.plain = tiny.train(ranks, steps, "plain", all);
  all.emplace_back("optim.post_validation=true");
  pair.validated = tiny.train(ranks, steps, "validated", all);
  return pair;
}

/// Steps of these norms that are clipped right behind one that is not, less those that have to end
/// in order: the updates that are made again. Saved every 9 steps, evaluated every 7.
int surprises(const std::vector<double>& norms, double clip_norm) {
  int count = 0;
  for (std::size_t i = 1; i < norms.size(); ++i) {
    const std::size_t step = i + 1;
    const bool ends_in_order = step % 9 == 0 || step % 7 == 0 || step == norms.size();
    const bool clipped = norms[i] > clip_norm;
    count += clipped && !(norms[i - 1] > clip_norm) && !ends_in_order ? 1 : 0;
  }
  return count;
}

/// Between any two norms that follow each other in size, those that would surprise the run most
/// often first.
std::vector<double> norms_to_clip_to(const std::vector<double>& norms) {
  std::vector<double> sorted = norms;
  std::ranges::sort(sorted);
  std::vector<double> between;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    between.push_back(0.5 * (sorted[i] + sorted[i - 1]));
  }
  std::ranges::stable_sort(between, std::ranges::greater{},
                           [&](double clip_norm) { return surprises(norms, clip_norm); });
  return between;
}

/// A norm to clip to that takes several steps of the run by surprise; clipped, the run is another.
double surprising_norm(const TinyRun& tiny, int ranks, int steps, Overrides overrides) {
  const RunTrace free = tiny.train(ranks, steps, "free", overrides);
  overrides.emplace_back();
  int tries = 0;
  for (const double clip_norm : norms_to_clip_to(free.norms)) {
    overrides.back() = "optim.clip_norm=" + std::to_string(clip_norm);
    const std::string name = "clip" + std::to_string(++tries);
    if (surprises(tiny.train(ranks, steps, name, overrides).norms, clip_norm) >= 2) {
      return clip_norm;
    }
  }
  FAIL("no such norm");
  return 0;
}

/// The same numbers, or none.
bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return std::ranges::equal(
      a, b, [](double x, double y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}

void check_same(const Pair& pair) {
  CHECK(pair.validated.losses == pair.plain.losses);
  CHECK(same(pair.validated.norms, pair.plain.norms));
  CHECK(pair.validated.evaluations == pair.plain.evaluations);
  CHECK(pair.validated.weights == pair.plain.weights);
  CHECK(pair.validated.moments == pair.plain.moments);
  CHECK(pair.validated.loss_scales == pair.plain.loss_scales);
  CHECK(pair.plain.result.tried_updates == 0);
}

}  // namespace

TEST_CASE("updates that are tried have the bits of those that wait for the norm",
          "[post_validation]") {
  const std::string schedule = GENERATE("1f1b", "zb-v", "interleaved");
  const std::string zero = GENERATE("0", "1", "3");
  const std::string precision = GENERATE("f32", "bf16");
  CAPTURE(schedule, zero, precision);
  const TinyRun tiny("llama");
  const Overrides options{"mesh.pp=2",
                          "mesh.tp=2",
                          "model.layers=4",
                          "mesh.schedule=\"" + schedule + "\"",
                          "mesh.zero=" + zero,
                          "train.precision=\"" + precision + "\"",
                          "optim.clip_norm=1000",
                          "model.dropout=0.1"};
  const Pair pair = both(tiny, 8, 12, options);
  check_same(pair);
  // All but the first, of which nothing is known, those that end in order (7, 9) and the last.
  CHECK(pair.validated.result.tried_updates == 8);
  CHECK(pair.validated.result.redone_updates == 0);
}

TEST_CASE("updates whose norm is too large are made again, and what began on their weights",
          "[post_validation]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string more =
      GENERATE("mesh.zero=0", "mesh.zero=1", "mesh.zero=3", "train.recompute=\"selective\"",
               "train.head_chunks=3", "offload.activations=\"cpu\"", "mesh.cp=2");
  CAPTURE(family, more);
  const TinyRun tiny(family);
  Overrides options{"mesh.pp=2", "model.layers=4", "mesh.schedule=\"zb-h1\"",
                    "train.precision=\"bf16\"", more};
  const double clip_norm = surprising_norm(tiny, 4, 30, options);
  options.push_back("optim.clip_norm=" + std::to_string(clip_norm));
  const Pair pair = both(tiny, 4, 30, options);
  check_same(pair);
  CHECK(pair.validated.result.redone_updates == surprises(pair.plain.norms, clip_norm));
  CHECK(pair.validated.result.redone_updates >= 2);
  CHECK(pair.validated.result.tried_updates > pair.validated.result.redone_updates);
}

TEST_CASE("a step of f16 that overflows is not taken, whatever went ahead", "[post_validation]") {
  const TinyRun tiny("gpt2");
  const Pair pair = both(tiny, 4, 30,
                         {"mesh.pp=2", "train.precision=\"f16\"", "optim.clip_norm=100",
                          "train.loss_scale_initial=1048576", "train.loss_scale_window=3"});
  check_same(pair);
  CHECK(pair.validated.skipped_steps == pair.plain.skipped_steps);
  CHECK(pair.plain.skipped_steps.back() >= 3);
  CHECK(pair.validated.result.redone_updates >= 1);
}

TEST_CASE("without clipping nothing is tried, and steps go ahead all the same",
          "[post_validation]") {
  const TinyRun tiny("gpt2");
  const Pair pair = both(tiny, 4, 10, {"mesh.pp=4", "model.layers=4", "optim.clip_norm=0"});
  check_same(pair);
  CHECK(pair.validated.result.tried_updates == 0);
}

TEST_CASE("local replicas validate by themselves", "[post_validation]") {
  const TinyRun tiny("llama");
  const Pair pair =
      both(tiny, 4, 20,
           {"mesh.pp=2", "mesh.dp_mode=\"local\"", "mesh.average_every=4", "optim.clip_norm=2"});
  check_same(pair);
  CHECK(pair.validated.result.tried_updates > 0);
}

TEST_CASE("a stop throws away what went ahead", "[post_validation]") {
  const TinyRun tiny("gpt2");
  const Overrides options{"mesh.pp=2", "checkpoint.every_steps=0", "train.eval_every_steps=0",
                          "optim.clip_norm=1000"};
  const RunTrace whole = tiny.train(2, 12, "whole", options);
  Overrides validated = options;
  validated.emplace_back("optim.post_validation=true");
  const RunTrace first = tiny.train_to_stop(2, 12, "parts", 5, validated);
  CHECK(first.result.code == ExitCode::stopped_saved);
  CHECK(first.losses.size() == 6);  // step 6 had been promised when step 5 was told
  CHECK(first.result.tried_updates == 5);
  tiny.withdraw_stop("parts");
  const RunTrace second = tiny.train(2, 12, "parts", options);  // and it goes on without
  CHECK(second.losses.size() == 6);
  CHECK(second.weights == whole.weights);
  CHECK(second.moments == whole.moments);
}

TEST_CASE("tried updates of offloaded state are refused", "[post_validation]") {
  const TinyRun tiny("gpt2");
  try {
    tiny.config(3, "refused",
                {"mesh.pp=2", "optim.post_validation=true", "offload.optimizer=\"cpu\""});
    FAIL("it was accepted");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), ContainsSubstring("optim.post_validation") &&
                                 ContainsSubstring("offload.optimizer"));
  }
}
