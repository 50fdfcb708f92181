// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/train/gradient_norm.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace fourfold;

namespace {

runfile::RunConfig tiny_run(const std::vector<std::string>& frozen = {}) {
  runfile::RunConfig config;
  config.model.frozen = frozen;
  config.model.layers = 1;
  config.model.hidden = 8;
  config.model.attention.heads = 2;
  config.model.vocab = 11;
  config.model.context = 4;
  config.model = config.model.resolved();
  config.train.precision = DType::f16;
  config.train.global_batch = config.train.micro_batch = 2;
  config.optim.clip_norm = 0.5;
  return config;
}

struct Found {
  float norm = 0;
  float scale = 0;
};

/// Of gradients that are all `value`, but for the last element.
Found found(int ranks, float value, float last, const std::vector<std::string>& frozen = {}) {
  Found of_first;
  comm::run_device_ranks(ranks, [&](comm::Communicator& world) {
    const device::Stream stream;
    harness::SharedArena arena;
    runfile::RunConfig config = tiny_run(frozen);
    config.train.micro_batch = 1;
    const train::ResolvedRun run = train::resolve_run({.config = config}, {.dp = ranks});
    comm::Mesh mesh(run.mesh, world);
    const model::Parameters parameters(model::parameter_table(config.model), DType::f16, arena);
    const parallel::ParameterShard share(parameters);
    for (const model::Parameter& parameter : parameters) {
      std::fill_n(parameter.gradient.as<float>(), parameter.gradient.elements(), value);
    }
    const model::Parameter& end = parameters.all().back();
    end.gradient.as<float>()[end.gradient.elements() - 1] = last;
    train::GradientNorm norm(run, parameters, share, mesh, arena);
    norm.find(mesh.data_plane(), 4.0, stream);
    const float of_all = norm.found(stream);
    if (world.rank() == 0) {
      of_first = {of_all, *norm.scale()};
    }
  });
  return of_first;
}

/// Of what is trained.
double elements(const std::vector<std::string>& frozen = {}) {
  double count = 0;
  for (const model::ParameterSpec& spec : model::parameter_table(tiny_run(frozen).model)) {
    count += spec.is_trainable() ? static_cast<double>(spec.shape.elements()) : 0;
  }
  return count;
}

}  // namespace

TEST_CASE("the norm counts each element once, clips, and takes the loss scale out",
          "[gradient_norm]") {
  const int ranks = GENERATE(1, 2);
  const double norm = std::sqrt((elements() - 1) * 0.25 + 9.0) / 4;  // of the loss itself
  const Found large = found(ranks, 0.5F, 3.0F);
  CHECK(std::fabs(large.norm - norm) < 1e-6 * norm);
  CHECK(std::fabs(large.scale - 0.5 / norm / 4) < 1e-6 * large.scale);
  const Found small = found(ranks, 0.0F, 1.0F);
  CHECK(small.norm == 0.25F);
  CHECK(small.scale == 0.25F);  // nothing is clipped
}

TEST_CASE("gradients of what is frozen are not in the norm", "[gradient_norm]") {
  const int ranks = GENERATE(1, 2);
  const std::vector<std::string> frozen{"embedding.*", "layers.0.mlp.up_proj.*"};
  REQUIRE(elements(frozen) < elements());
  const double norm = std::sqrt(elements(frozen) * 0.25) / 4;
  const Found half = found(ranks, 0.5F, 0.5F, frozen);
  CHECK(std::fabs(half.norm - norm) < 1e-6 * norm);
  CHECK(std::fabs(half.scale - 0.5 / norm / 4) < 1e-6 * half.scale);
}

TEST_CASE("a gradient that is no number voids the scale", "[gradient_norm]") {
  const float bad =
      GENERATE(std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN());
  const Found overflowed = found(2, 0.5F, bad);
  CHECK_FALSE(std::isfinite(overflowed.norm));
  CHECK_FALSE(std::isfinite(overflowed.scale));
}
