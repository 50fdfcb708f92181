// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Local SGD: replicas that train by themselves and meet, held against runs of one rank that are
// brought together by hand.
#include "run/tiny_run.hpp"
#include "shared_arena.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/runfile/learning_rate.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/outer_optimizer.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/step_runner.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace fourfold;
using comm::MeshShape;
using test::check_close;
using test::joined;
using test::mesh_options;
using test::Options;
using test::RunTrace;
using test::TinyRun;

namespace {

Options local(int every, const std::string& outer, const Options& more = {}) {
  return joined(
      {"mesh.dp_mode=local", fmt::format("mesh.average_every={}", every), "optim.outer=" + outer},
      more);
}

/// One rank of a run that its test steps by hand.
struct Rank {
  Rank(const runfile::RunConfig& config, comm::Communicator& world, const MeshShape& shape,
       const MeshShape& data_mesh, int dp_rank)
      : dataset(config.data.train,
                train::dataset_options(config, data::TokenDataset::Order::shuffled)),
        mesh(shape, world),
        resolved(train::resolve_run({.config = config}, shape)),
        runner(resolved, mesh, arena),
        loader(dataset, plan_of(config, shape, data_mesh), dp_rank,
               train::held_tokens(mesh, config.model.context), arena) {
    runner.initialise(7, stream);
  }
  /// Of a global batch for `data_mesh`, when this run's own is a replica's part of it.
  static data::BatchPlan plan_of(const runfile::RunConfig& config, const MeshShape& shape,
                                 const MeshShape& data_mesh) {
    runfile::RunConfig whole = config;
    whole.train.global_batch = config.train.global_batch * data_mesh.dp / shape.dp;
    return train::batch_plan(whole, data_mesh);
  }
  std::vector<float> masters() const {
    std::vector<float> values;
    for (const parallel::ParameterShard::Run& run : runner.share().runs()) {
      const std::size_t begin = values.size();
      values.resize(begin + static_cast<std::size_t>(run.master.elements()));
      device::copy(values.data() + begin, run.master.data(), run.master.bytes(), stream);
    }
    stream.ref().synchronize();
    return values;
  }
  void set_masters(const std::vector<float>& values) {
    auto from = values.begin();
    for (const parallel::ParameterShard::Run& run : runner.share().runs()) {
      device::copy(run.master.data(), &*from, run.master.bytes(), stream);
      from += run.master.elements();
    }
    stream.ref().synchronize();  // `values` are the caller's
    runner.update_weights_from_masters(stream);
  }
  bool overflowed() const {
    for (const parallel::ParameterShard::Run& run : runner.share().runs()) {
      const float* const values = run.gradient.as<float>();
      if (!std::all_of(values, values + run.gradient.elements(),
                       [](float value) { return std::isfinite(value); })) {
        return true;
      }
    }
    return false;
  }

  device::Stream stream;
  fourfold::harness::SharedArena arena;
  data::TokenDataset dataset;
  comm::Mesh mesh;
  train::ResolvedRun resolved;
  train::StepRunner runner;
  train::BatchLoader loader;
};

/// Masters of replica 0 after each step.
using Course = std::vector<std::vector<float>>;

Course course_of_local_run(const runfile::RunConfig& config, int replicas, int steps) {
  Course course;
  comm::run_device_ranks(replicas, [&](comm::Communicator& world) {
    const MeshShape shape{.dp = replicas};
    Rank rank(config, world, shape, shape, world.rank());
    for (int step = 0; step < steps; ++step) {
      const auto batches = rank.loader.load(step, step * config.train.global_batch, rank.stream);
      rank.runner.run(step, batches, 1e-2, rank.stream);
      rank.runner.outcome(rank.stream);
      if (world.rank() == 0) {
        course.push_back(rank.masters());
      }
    }
  });
  return course;
}

/// The same by runs of one rank each, which this function brings together as DiLoCo's Algorithm 1
/// says, in f32: where a gradient is all but zero Adam makes full steps of the last bit.
Course course_by_hand(runfile::RunConfig config, int replicas, int steps) {
  const runfile::OptimConfig optim = config.optim;
  const auto every = static_cast<int>(config.mesh.average_every);
  const std::int64_t global_batch = config.train.global_batch;
  config.mesh.shape.dp = 1;
  config.train.global_batch /= replicas;
  Course course;
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    std::vector<std::unique_ptr<Rank>> alone;
    for (int replica = 0; replica < replicas; ++replica) {
      alone.push_back(
          std::make_unique<Rank>(config, world, MeshShape{}, MeshShape{.dp = replicas}, replica));
    }
    std::vector<float> outer = alone.front()->masters();
    std::vector<float> velocity(outer.size());
    const auto lr = static_cast<float>(optim.outer_lr);
    const auto momentum = static_cast<float>(optim.outer_momentum);
    for (int step = 0; step < steps; ++step) {
      for (const auto& rank : alone) {
        train::StepBatches batches = rank->loader.load(step, step * global_batch, rank->stream);
        batches.targets = batches.replica_targets;
        rank->runner.run(step, batches, 1e-2, rank->stream);
        rank->runner.outcome(rank->stream);
      }
      if ((step + 1) % every == 0) {
        std::vector<float> sum(outer.size());
        for (const auto& rank : alone) {
          const std::vector<float> masters = rank->masters();
          std::ranges::transform(sum, masters, sum.begin(), std::plus<>());
        }
        for (std::size_t i = 0; i < sum.size(); ++i) {
          const float mean = sum[i] / static_cast<float>(replicas);
          const float delta = outer[i] - mean;
          velocity[i] = momentum * velocity[i] + delta;
          const bool averages = optim.outer == runfile::OuterOptimizerKind::average;
          outer[i] = averages ? mean : outer[i] - lr * (delta + momentum * velocity[i]);
        }
        for (const auto& rank : alone) {
          rank->set_masters(outer);
        }
      }
      course.push_back(alone.front()->masters());
    }
  });
  return course;
}

}  // namespace

TEST_CASE("replicas that meet are runs of one rank brought together", "[outer_optimizer]") {
  const std::string outer = GENERATE("average", "nesterov");
  const int replicas = GENERATE(2, 4);
  const TinyRun tiny("gpt2");
  const runfile::RunConfig config =
      tiny.config(8, "none",
                  local(3, outer,
                        {fmt::format("mesh.dp={}", replicas), "optim.outer_lr=0.6",
                         "optim.outer_momentum=0.8"}))
          .config;
  const Course got = course_of_local_run(config, replicas, 8);  // the third round is cut short
  const Course expected = course_by_hand(config, replicas, 8);
  REQUIRE(got.size() == expected.size());
  for (std::size_t step = 0; step < got.size(); ++step) {
    REQUIRE(got[step].size() == expected[step].size());
    double worst = 0;
    for (std::size_t i = 0; i < got[step].size(); ++i) {
      worst = std::max(worst, std::fabs(static_cast<double>(got[step][i]) -
                                        static_cast<double>(expected[step][i])));
    }
    CAPTURE(outer, replicas, step, worst);
    CHECK(worst <= 1e-6);
  }
}

TEST_CASE("with a round of one step of plain SGD local is sync", "[outer_optimizer]") {
  const TinyRun tiny("llama");
  const Options plain{"optim.name=sgd", "optim.momentum=0", "optim.clip_norm=0",
                      "optim.weight_decay=0.01", "optim.lr=0.5"};
  const RunTrace sync = tiny.train(4, 8, "sync", plain);
  const RunTrace every_step = tiny.train(4, 8, "local", joined(local(1, "average"), plain));
  check_close(every_step.losses, sync.losses, 1e-6);
  check_close(every_step.evaluations, sync.evaluations, 1e-6);
  const RunTrace nesterov = tiny.train(
      4, 8, "outer",
      joined(local(1, "nesterov", {"optim.outer_lr=1", "optim.outer_momentum=0"}), plain));
  check_close(nesterov.losses, sync.losses, 1e-6);
  const RunTrace apart = tiny.train(4, 8, "apart", joined(local(4, "average"), plain));
  CHECK(apart.losses != sync.losses);
}

TEST_CASE("a local run that stopped and restarted has the same bits", "[outer_optimizer]") {
  const std::string outer = GENERATE("average", "nesterov");
  const std::string precision = GENERATE("f32", "bf16", "f16", "bf16 at random");
  const auto [mesh, zero] =
      GENERATE(std::pair(MeshShape{.dp = 4}, 0), std::pair(MeshShape{.dp = 2, .cp = 2}, 3));
  const TinyRun tiny("gpt2");
  // Saves every four steps, so that rounds of three are cut short by some and not by others.
  const Options options =
      joined(local(3, outer,
                   {"train.precision=" + precision.substr(0, precision.find(' ')),
                    std::string("optim.stochastic_rounding=") +
                        (precision.ends_with("random") ? "true" : "false"),
                    fmt::format("mesh.zero={}", zero)}),
             mesh_options(mesh));
  CAPTURE(outer, precision, mesh.str());
  const RunTrace whole = tiny.train(4, 16, "whole", options);
  tiny.train(4, 8, "parts", options);
  const RunTrace second = tiny.train(4, 16, "parts", options);
  CHECK(second.losses == std::vector<double>(whole.losses.begin() + 8, whole.losses.end()));
  CHECK(second.weights == whole.weights);
  CHECK(tiny.identity("whole") == tiny.identity("parts"));
  CHECK(whole.losses.back() < whole.losses.front());
}

TEST_CASE("a save where a round ends changes nothing", "[outer_optimizer]") {
  const TinyRun tiny("gpt2");
  // Without states of the rule, which a save averages over the replicas.
  const Options options = local(
      3, "nesterov", {"optim.outer_lr=0.6", "optim.name=sgd", "optim.momentum=0", "optim.lr=0.5"});
  const RunTrace unsaved =
      tiny.train(2, 9, "unsaved", joined(options, {"checkpoint.every_steps=0"}));
  const RunTrace saved = tiny.train(2, 9, "saved", joined(options, {"checkpoint.every_steps=3"}));
  CHECK(saved.losses == unsaved.losses);
  CHECK(saved.weights == unsaved.weights);
}

TEST_CASE("offloaded replicas meet to the same bits", "[outer_optimizer]") {
  const std::string outer = GENERATE("average", "nesterov");
  const std::string precision = GENERATE("f32", "f16");
  const auto [mesh, zero] =
      GENERATE(std::pair(MeshShape{.dp = 4}, 0), std::pair(MeshShape{.dp = 2, .cp = 2}, 3));
  const TinyRun tiny("llama");
  const harness::ScratchFolder disk;
  const Options options =
      joined(local(3, outer, {"train.precision=" + precision, fmt::format("mesh.zero={}", zero)}),
             mesh_options(mesh));
  CAPTURE(outer, precision, mesh.str());
  const RunTrace plain = tiny.train(4, 12, "plain", options);
  const auto offloaded = [&](const std::string& tier) {  // by the page
    return joined(options, {"offload.optimizer=" + tier, "offload.buffer_mb=0.1"});
  };
  const Options on_disk = offloaded("nvme:" + disk.path().string());
  for (const Options& tier : {offloaded("cpu"), on_disk}) {
    CAPTURE(tier);
    const std::string name = tier == on_disk ? "disk" : "host";
    const RunTrace trace = tiny.train(4, 12, name, tier);
    CHECK(trace.losses == plain.losses);
    CHECK(trace.evaluations == plain.evaluations);
    CHECK(trace.weights == plain.weights);
    CHECK(trace.moments == plain.moments);
    CHECK(tiny.identity(name) == tiny.identity("plain"));
  }
  tiny.train(4, 4, "moved", on_disk);
  tiny.train(4, 8, "moved", offloaded("cpu"));
  tiny.train(4, 12, "moved", on_disk);
  CHECK(tiny.identity("moved") == tiny.identity("plain"));
}

TEST_CASE("a local run goes on with other numbers of replicas", "[outer_optimizer]") {
  const TinyRun tiny("llama");
  const Options options = local(3, "nesterov");
  for (const int replicas : {1, 2, 8}) {
    const std::string name = fmt::format("to{}", replicas);
    const RunTrace before = tiny.train(4, 8, name, options);
    const RunTrace restored = tiny.train(replicas, 8, name, options);  // nothing left to train
    CHECK(restored.weights == before.weights);
    CHECK(restored.moments == before.moments);
    const RunTrace after = tiny.train(replicas, 16, name, options);
    REQUIRE(after.losses.size() == 8);
    CHECK(after.losses.back() < before.losses.front());
  }
}

TEST_CASE("an overflow of one replica skips the step of all", "[outer_optimizer]") {
  const TinyRun tiny("gpt2");
  const runfile::RunConfig config =
      tiny.config(60, "none",
                  local(7, "average",
                        {"mesh.dp=4", "train.precision=f16", "train.loss_scale_window=1",
                         "train.loss_scale_initial=1048576"}))
          .config;
  constexpr int steps = 60;
  std::vector<std::vector<train::StepOutcome>> outcomes(4);
  std::vector<std::vector<bool>> overflows(4);
  comm::run_device_ranks(4, [&](comm::Communicator& world) {
    const auto me = static_cast<std::size_t>(world.rank());
    const MeshShape shape{.dp = 4};
    Rank rank(config, world, shape, shape, world.rank());
    for (int step = 0; step < steps; ++step) {
      const auto batches = rank.loader.load(step, step * config.train.global_batch, rank.stream);
      rank.runner.run(step, batches, 1e-2, rank.stream);
      outcomes[me].push_back(rank.runner.outcome(rank.stream));
      overflows[me].push_back(rank.overflowed());
    }
  });
  int on_some = 0;
  for (std::size_t step = 0; step < steps; ++step) {
    int overflowed = 0;
    for (std::size_t rank = 0; rank < 4; ++rank) {
      overflowed += overflows[rank][step] ? 1 : 0;
      CHECK(outcomes[rank][step].status == outcomes[0][step].status);
      CHECK(outcomes[rank][step].loss_scale == outcomes[0][step].loss_scale);
    }
    CHECK((outcomes[0][step].status == train::StepStatus::skipped) == (overflowed > 0));
    on_some += overflowed > 0 && overflowed < 4 ? 1 : 0;
  }
  CHECK(on_some > 0);
}

TEST_CASE("local replicas send weights when they meet, and no gradients", "[outer_optimizer]") {
  const TinyRun tiny("gpt2");
  const Options options = local(3, "nesterov", {"mesh.dp=2"});
  const runfile::RunConfig config = tiny.config(1, "none", options).config;
  comm::run_device_ranks(2, [&](comm::Communicator& world) {
    const MeshShape shape{.dp = 2};
    const Rank rank(config, world, shape, shape, world.rank());
    std::int64_t elements = 0;
    for (const parallel::ParameterShard::Run& run : rank.runner.share().runs()) {
      elements += run.flat.count;
    }
    const bool right = rank.runner.sent_gradient_bytes() == 0 &&
                       std::abs(rank.runner.outer_optimizer().sent_bytes() - 4 * elements) <= 64;
    if (!right) {
      throw std::runtime_error("sent bytes");
    }
  });
}
