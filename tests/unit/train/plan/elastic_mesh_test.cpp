// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/tiny_run.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/train/elastic_mesh.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <string>
#include <vector>

namespace fourfold::train {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using test::RunTrace;
using test::TinyRun;
using Options = std::vector<std::string>;

/// Of a tiny run (2 layers, 2 heads, global batch 8).
class Elastic {
 public:
  Elastic() : tiny_("gpt2") {}
  ElasticRun choose(std::int64_t tasks, const Options& options, int nodes = 1,
                    std::size_t node_bytes = 0) const {
    return choose_mesh(config(options), {.nodes = nodes, .tasks = tasks, .node_bytes = node_bytes});
  }
  Options overrides(std::int64_t tasks, const Options& options) const {
    return overrides_for(choose(tasks, options), config(options).config, tasks);
  }
  runfile::EffectiveConfig config(const Options& options) const {
    return tiny_.config(8, "elastic", options);
  }
  const TinyRun& tiny() const { return tiny_; }

 private:
  TinyRun tiny_;
};

comm::MeshShape mesh(int pp, int dp, int cp, int tp) {
  return {.pp = pp, .dp = dp, .cp = cp, .tp = tp};
}

}  // namespace

TEST_CASE("axes of the model are kept while there are tasks for them", "[elastic_mesh]") {
  const Elastic elastic;
  const Options four{"mesh.pp=2", "mesh.tp=2", "train.micro_batch=1"};
  CHECK(elastic.choose(8, four).mesh == mesh(2, 2, 1, 2));
  CHECK(elastic.overrides(8, four).empty());
  CHECK(elastic.choose(16, four).mesh == mesh(2, 4, 1, 2));
  CHECK(elastic.choose(7, four).mesh == mesh(2, 1, 1, 2));
  CHECK(elastic.overrides(7, four) == Options{"mesh.dp=1"});  // 7 is no multiple of 4
  // A global batch of 8 is not dealt out to 3, 5, 6 or 7.
  CHECK(elastic.choose(7, {"train.micro_batch=1"}).mesh == mesh(1, 4, 1, 1));
  CHECK(elastic.choose(3, {"train.micro_batch=1"}).mesh == mesh(1, 2, 1, 1));
  CHECK(elastic.choose(1000, {"train.micro_batch=1"}).mesh == mesh(1, 8, 1, 1));
}

TEST_CASE("with too few tasks the axes become smaller, tensor parallelism last", "[elastic_mesh]") {
  const Elastic elastic;
  const Options options{"mesh.pp=2", "mesh.cp=2", "mesh.tp=2", "train.micro_batch=1"};
  CHECK(elastic.choose(8, options).mesh == mesh(2, 1, 2, 2));
  CHECK(elastic.choose(7, options).mesh == mesh(1, 1, 2, 2));
  CHECK(elastic.overrides(7, options) == Options{"mesh.pp=1", "mesh.dp=1"});
  CHECK(elastic.choose(3, options).mesh == mesh(1, 1, 1, 2));
  CHECK(elastic.choose(1, options).mesh == mesh(1, 1, 1, 1));
  // Three replicas would use all three tasks.
  const Options twelve{"mesh.pp=2", "mesh.tp=2", "train.micro_batch=1", "train.global_batch=12"};
  CHECK(elastic.choose(3, twelve).mesh == mesh(1, 1, 1, 2));
  CHECK(elastic.overrides(3, twelve) == Options{"mesh.pp=1", "mesh.dp=1"});
  const Options stages{"mesh.pp=4", "model.layers=4", "train.micro_batch=1",
                       "train.global_batch=12"};
  CHECK(elastic.choose(3, stages).mesh == mesh(1, 3, 1, 1));
  const Options dealt{"mesh.pp=2", "mesh.tp=2", "mesh.stage_layers=[1,1]", "train.micro_batch=1"};
  CHECK(elastic.choose(3, dealt).mesh == mesh(2, 1, 1, 1));
  CHECK_THROWS_AS(elastic.choose(1, dealt), UserError);
}

TEST_CASE("micro-batches become smaller where a replica's share wants it", "[elastic_mesh]") {
  const Elastic elastic;
  const Options four{"train.micro_batch=4"};
  CHECK(elastic.choose(2, four).batches.micro_batch == 4);
  CHECK(elastic.choose(4, four).batches.micro_batch == 2);
  CHECK(elastic.overrides(4, four) == Options{"train.micro_batch=2"});
  CHECK(elastic.choose(1, {"train.micro_batch=3", "mesh.tp=2"}).batches.micro_batch == 2);
  // Interleaved wants a micro-batch for each of two stages at least.
  const ElasticRun looped = elastic.choose(
      4, {"train.micro_batch=4", "mesh.pp=2", "mesh.schedule=interleaved", "model.layers=4"});
  CHECK(looped.mesh == mesh(2, 2, 1, 1));
  CHECK(looped.batches.micro_batch == 2);
}

TEST_CASE("a number of replicas leaves no choice", "[elastic_mesh]") {
  const Elastic elastic;
  CHECK(elastic.choose(4, {"mesh.dp=2", "mesh.tp=2"}).mesh == mesh(1, 2, 1, 2));
  CHECK(elastic.overrides(4, {"mesh.dp=2", "mesh.tp=2"}).empty());
  CHECK_THROWS_AS(elastic.choose(6, {"mesh.dp=2", "mesh.tp=2"}), UserError);
  CHECK_THROWS_AS(elastic.choose(2, {"mesh.dp=2", "mesh.tp=2"}), UserError);
  CHECK_THROWS_AS(elastic.choose(4, {"mesh.dp=4", "train.micro_batch=4"}), UserError);
}

TEST_CASE("numbers of nodes that leave some idle are known", "[elastic_mesh]") {
  const Elastic elastic;
  // Two tasks on a node: a global batch of 8 is dealt out to 2, 4 and 8.
  const auto counts = [&](int least, int most, const Options& options) {
    return counts_with_idle_nodes(elastic.config(options), least, most, 2, {});
  };
  CHECK(counts(1, 4, {}) == std::vector{3});
  CHECK(counts(1, 6, {}) == std::vector{3, 5, 6});
  CHECK(counts(2, 2, {}).empty());
  const auto idle = [&](int nodes, int tasks) {
    return idle_nodes(elastic.choose(tasks, {}, nodes), {.nodes = nodes, .tasks = tasks});
  };
  CHECK(idle(3, 6) == 1);
  CHECK(idle(6, 12) == 2);
  CHECK(idle(2, 6) == 0);  // tasks, not a node
  // There is no mesh on one node, nor on three.
  CHECK(counts(1, 3, {"mesh.dp=4"}).empty());
}

TEST_CASE("every mesh that is chosen can be laid out", "[elastic_mesh]") {
  const Elastic elastic;
  for (const Options& options : std::vector<Options>{
           {"train.micro_batch=3", "train.global_batch=12"},
           {"mesh.pp=2", "mesh.schedule=zb-v", "model.layers=4", "train.micro_batch=2"},
           {"mesh.pp=2", "mesh.tp=2", "mesh.cp=2", "mesh.zero=3", "train.micro_batch=2"},
           {"mesh.cp=4", "mesh.zero=1", "train.micro_batch=8"}}) {
    for (std::int64_t tasks = 1; tasks <= 20; ++tasks) {
      const ElasticRun chosen = elastic.choose(tasks, options);
      CAPTURE(options, tasks, chosen.mesh.str(), chosen.batches.micro_batch);
      CHECK(chosen.mesh.ranks() <= tasks);
      Options all = options;
      const Options more = elastic.overrides(tasks, options);
      all.insert(all.end(), more.begin(), more.end());
      const runfile::EffectiveConfig config = elastic.config(all);
      CHECK(resolve_run(config, chosen.mesh.ranks()).mesh == chosen.mesh);
    }
  }
}

TEST_CASE("what the run file itself gets wrong is told with its place", "[elastic_mesh]") {
  const Elastic elastic;
  CHECK_THROWS_MATCHES(elastic.choose(4, {"mesh.tp=4"}), UserError,
                       MessageMatches(ContainsSubstring("--set: mesh.tp = 4 does not fit")));
  // Nor is it hidden by a mesh for fewer tasks.
  CHECK_THROWS_MATCHES(elastic.choose(3, {"mesh.tp=4"}), UserError,
                       MessageMatches(ContainsSubstring("--set: mesh.tp = 4 does not fit")));
}

TEST_CASE("a mesh has to fit into the memory of its nodes", "[elastic_mesh]") {
  const Elastic elastic;
  const Options shared{"mesh.zero=1", "train.micro_batch=1"};
  CHECK(elastic.choose(8, shared, 4, 1 << 30).mesh == mesh(1, 8, 1, 1));
  CHECK_THROWS_MATCHES(elastic.choose(8, shared, 4, 1 << 10), UserError,
                       MessageMatches(ContainsSubstring("does not fit into 4 nodes")));
  // With a rank on each node, what a node needs is what that rank does.
  const std::size_t rank_bytes = elastic.choose(8, shared).rank_bytes;
  CHECK(elastic.choose(8, shared, 8, rank_bytes).mesh.dp == 8);
  CHECK(elastic.choose(8, shared, 4, 2 * rank_bytes).mesh.dp == 8);
  // On hosts a process takes more than the tensors of such a model, each rank of a node its own.
  CHECK(rank_bytes >= process_bytes(1));
  if (process_bytes(1) > 0) {
    CHECK_THROWS_AS(elastic.choose(1, {}, 1, process_bytes(1)), UserError);
    CHECK(elastic.choose(1, {}, 1, process_bytes(1) + (std::size_t{4} << 20)).mesh.ranks() == 1);
    CHECK(elastic.choose(8, {}, 1, 4 * process_bytes(1)).mesh.dp < 4);
  }
  // Fewer replicas on a node need less of it: of hosts all, of GPUs' nodes the state's images,
  // which are cut in any number of shares.
  const std::string zero = device::has_own_memory ? "mesh.zero=0" : "mesh.zero=1";
  const Options eight{zero, "train.micro_batch=1"};
  const std::size_t too_few = 8 * elastic.choose(8, eight).rank_bytes - 1;
  CHECK(elastic.choose(8, eight, 1, too_few).mesh.dp < 8);
  CHECK_THROWS_AS(elastic.choose(8, {zero, "mesh.dp=8", "train.micro_batch=1"}, 1, too_few),
                  UserError);
}

TEST_CASE("a run goes on at another size with the same data", "[elastic_mesh]") {
  const Elastic elastic;
  const Options options{"mesh.pp=2", "mesh.tp=2", "train.micro_batch=2",
                        "checkpoint.every_steps=1"};
  const RunTrace whole = elastic.tiny().train(1, 6, "whole", {"train.micro_batch=1"});
  std::vector<double> losses;
  int steps = 0;
  for (const std::int64_t tasks : {9, 3, 4}) {
    const ElasticRun chosen = elastic.choose(tasks, options);
    Options all = options;
    const Options more = elastic.overrides(tasks, options);
    all.insert(all.end(), more.begin(), more.end());
    steps += 2;
    const RunTrace part =
        elastic.tiny().train(static_cast<int>(chosen.mesh.ranks()), steps, "parts", all);
    losses.insert(losses.end(), part.losses.begin(), part.losses.end());
  }
  REQUIRE(losses.size() == whole.losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    CHECK(std::abs(losses[i] - whole.losses[i]) < 1e-4 * whole.losses[i]);
  }
}

}  // namespace fourfold::train
