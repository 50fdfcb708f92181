// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/schedule/schedule_generators.hpp>
#include <fourfold/train/elastic_mesh.hpp>
#include <fourfold/train/rank_plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>

namespace fourfold::train {
namespace {

using runfile::EffectiveConfig;
using runfile::RunConfig;

/// Those of 1 .. value that divide it, the largest first.
std::vector<std::int64_t> divisors(std::int64_t value) {
  std::vector<std::int64_t> found;
  for (std::int64_t divisor = value; divisor >= 1; --divisor) {
    if (value % divisor == 0) {
      found.push_back(divisor);
    }
  }
  return found;
}

std::int64_t model_ranks(comm::MeshShape mesh) {
  mesh.dp = 1;
  return mesh.ranks();
}

/// A mesh with as many replicas as there are tasks for and the global batch is dealt out to, and
/// after it with fewer: a schedule may want more micro-batches than the most leave.
void add_replicated(comm::MeshShape mesh, const RunConfig& config, std::int64_t tasks,
                    std::vector<comm::MeshShape>& meshes) {
  for (std::int64_t dp = tasks / model_ranks(mesh); dp >= 1; --dp) {
    if (config.train.global_batch % dp == 0) {
      mesh.dp = static_cast<int>(dp);
      meshes.push_back(mesh);
    }
  }
}

/// Stages that are given one by one cannot be fewer.
bool stages_are_fixed(const RunConfig& config) {
  return !config.mesh.stage_layers.empty() ||
         std::ranges::count(schedule::schedule_names(), config.mesh.schedule) == 0;
}

/// What may be tried, the best first. @pre the model's own ranks are too many for the tasks
std::vector<comm::MeshShape> smaller_meshes(const RunConfig& config, std::int64_t tasks) {
  comm::MeshShape one = config.mesh.shape;
  one.dp = 1;
  std::vector<comm::MeshShape> shapes{one};
  for (const comm::Axis axis : comm::all_axes) {
    if (axis == comm::Axis::dp || (axis == comm::Axis::pp && stages_are_fixed(config))) {
      continue;
    }
    const std::vector<comm::MeshShape> before = std::exchange(shapes, {});
    for (comm::MeshShape shape : before) {
      for (const std::int64_t degree : divisors(shape[axis])) {
        shape[axis] = static_cast<int>(degree);
        shapes.push_back(shape);
      }
    }
  }
  std::vector<comm::MeshShape> meshes;
  for (const comm::MeshShape& shape : shapes) {
    add_replicated(shape, config, tasks, meshes);
  }
  std::ranges::stable_sort(meshes, std::greater{}, [](const comm::MeshShape& mesh) {
    return std::tuple(mesh.tp, mesh.cp, mesh.ranks(), mesh.pp);
  });
  return meshes;
}

/// Looks for a mesh that works, and keeps the reason why none does.
class Search {
 public:
  Search(const RunConfig& config, const Allocation& allocation)
      : config_(config), allocation_(allocation) {}

  ElasticRun find() {
    comm::MeshShape mesh = config_.mesh.shape;
    if (mesh.dp > 0) {
      if (auto found = fitting(resolve_run({.config = config_}, allocation_.tasks))) {
        return std::move(*found);
      }
      fail();
    }
    mesh.dp = 1;
    std::vector<comm::MeshShape> meshes;
    add_replicated(mesh, config_, allocation_.tasks, meshes);
    if (meshes.empty()) {
      if (!try_mesh(mesh, false)) {
        fail();  // what is wrong is not made smaller
      }
      meshes = smaller_meshes(config_, allocation_.tasks);
    }
    for (const comm::MeshShape& one : meshes) {
      if (auto found = try_mesh(one, true)) {
        return std::move(*found);
      }
    }
    fail();
  }

 private:
  /// One mesh, with the largest micro-batch that works.
  std::optional<ElasticRun> try_mesh(const comm::MeshShape& mesh, bool has_to_fit) {
    RunConfig config = config_;
    for (const std::int64_t micro_batch : divisors(config.train.global_batch / mesh.dp)) {
      if (micro_batch > config_.train.micro_batch) {
        continue;
      }
      config.train.micro_batch = micro_batch;
      try {
        ResolvedRun run = resolve_run({.config = config}, mesh);
        if (auto found = has_to_fit ? fitting(std::move(run)) : ElasticRun{std::move(run)}) {
          return found;
        }
      } catch (const UserError& error) {  // a schedule may want more micro-batches
        first_error_ = first_error_ ? first_error_ : error;
      }
    }
    return std::nullopt;
  }

  [[noreturn]] void fail() const {
    if (least_bytes_ == 0 && first_error_) {
      throw *first_error_;
    }
    constexpr double gib = 1 << 30;
    const std::string limit =
        allocation_.limited_by.empty() ? "" : format_message(", by {}", allocation_.limited_by);
    throw UserError(
        ExitCode::config,
        format_message(
            "the run does not fit into {} of {:.2f} GiB{} ({} needs {:.2f} GiB on each, the "
            "least of all); {}, or see `fourfold plan` for what takes the memory",
            allocation_.nodes == 1 ? "1 node" : format_message("{} nodes", allocation_.nodes),
            static_cast<double>(allocation_.node_bytes) / gib, limit, least_mesh_.str(),
            static_cast<double>(least_bytes_) / gib, advice()));
  }

  /// By what binds: the job's own limit, or what the nodes have.
  std::string advice() const {
    constexpr std::size_t step = std::size_t{100} << 20;
    const bool nodes_have_it =
        allocation_.most_node_bytes == 0 || least_bytes_ <= allocation_.most_node_bytes;
    if (allocation_.limited_by.empty() || !nodes_have_it) {
      return "ask for more nodes";
    }
    return format_message("ask for more memory of each node ({}={}M)", allocation_.memory_option,
                          (least_bytes_ + step - 1) / step * 100);
  }

  std::optional<ElasticRun> fitting(ResolvedRun resolved) {
    ElasticRun run{std::move(resolved)};
    run.rank_bytes = node_bytes(run, plan_stages(run));
    const std::int64_t tasks_per_node =
        (allocation_.tasks + allocation_.nodes - 1) / allocation_.nodes;
    const std::size_t needed = run.rank_bytes * std::min(run.mesh.ranks(), tasks_per_node);
    if (allocation_.node_bytes == 0 || needed <= allocation_.node_bytes) {
      return run;
    }
    if (least_bytes_ == 0 || needed < least_bytes_) {
      least_bytes_ = needed;
      least_mesh_ = run.mesh;
    }
    return std::nullopt;
  }

  const RunConfig& config_;
  Allocation allocation_;
  std::optional<UserError> first_error_;
  std::size_t least_bytes_ = 0;
  comm::MeshShape least_mesh_;
};

}  // namespace

ElasticRun choose_mesh(const EffectiveConfig& effective, const Allocation& allocation) {
  FOURFOLD_EXPECT(allocation.nodes >= 1 && allocation.tasks >= 1);
  try {
    return Search(effective.config, allocation).find();
  } catch (const UserError& error) {
    throw UserError(error.code(), runfile::located(error.what(), effective.origins));
  }
}

int idle_nodes(const ElasticRun& chosen, const Allocation& allocation) {
  const std::int64_t tasks_per_node =
      std::max<std::int64_t>(allocation.tasks / allocation.nodes, 1);
  return static_cast<int>((allocation.tasks - chosen.mesh.ranks()) / tasks_per_node);
}

std::vector<int> counts_with_idle_nodes(const EffectiveConfig& effective, int least, int most,
                                        std::int64_t tasks_per_node, Allocation on_nodes) {
  FOURFOLD_EXPECT(1 <= least && least <= most && tasks_per_node >= 1);
  constexpr int most_told = 10000;  // as many meshes are chosen
  std::vector<int> counts;
  for (int more = 0; more <= std::min(most - least, most_told); ++more) {
    on_nodes.nodes = least + more;
    on_nodes.tasks = on_nodes.nodes * tasks_per_node;
    try {
      if (idle_nodes(choose_mesh(effective, on_nodes), on_nodes) > 0) {
        counts.push_back(on_nodes.nodes);
      }
    } catch (const UserError&) {
      continue;
    }
  }
  return counts;
}

std::vector<std::string> overrides_for(const ElasticRun& chosen, const RunConfig& config,
                                       std::int64_t tasks) {
  std::vector<std::string> overrides;
  const auto set = [&](const std::string& key, std::int64_t value, std::int64_t usual) {
    if (value != usual) {
      overrides.push_back(fmt::format("{}={}", key, value));
    }
  };
  for (const comm::Axis axis : comm::all_axes) {
    // What is "auto" is what the tasks leave, if all of them are started.
    const bool is_left = axis == comm::Axis::dp && chosen.mesh.ranks() == tasks;
    set(fmt::format("mesh.{}", name(axis)), chosen.mesh[axis],
        is_left ? chosen.mesh[axis] : config.mesh.shape[axis]);
  }
  set("train.micro_batch", chosen.batches.micro_batch, config.train.micro_batch);
  return overrides;
}

}  // namespace fourfold::train
