// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// A rule that needs whole matrices, whatever has cut them: one Newton-Schulz step towards the
// nearest orthogonal matrix (as Muon makes five of), beside SGD for all other parameters.
#include "run/tiny_run.hpp"
#include "shared_arena.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/parallel/whole_matrices.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/step_runner.hpp>
#include <fourfold/train/training_state.hpp>
#include <fourfold/train/update_rule.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using comm::MeshShape;
using test::Options;
using test::TinyRun;

namespace {

namespace fs = std::filesystem;

/// X = 1.5 X - 0.5 X X^T X of X = matrix / |matrix|, sums in double.
void newton_schulz(float* matrix, const Shape& shape) {
  const auto rows = static_cast<std::size_t>(shape[0]);
  const auto columns = static_cast<std::size_t>(shape[1]);
  double squares = 0;
  for (std::size_t i = 0; i < rows * columns; ++i) {
    squares += double{matrix[i]} * matrix[i];
  }
  const double scale = 1 / std::sqrt(squares);
  std::vector<double> x(matrix, matrix + rows * columns);
  for (double& value : x) {
    value *= scale;
  }
  std::vector<double> gram(rows * rows);  // X X^T
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < rows; ++j) {
      for (std::size_t k = 0; k < columns; ++k) {
        gram[i * rows + j] += x[i * columns + k] * x[j * columns + k];
      }
    }
  }
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t k = 0; k < columns; ++k) {
      double cube = 0;
      for (std::size_t j = 0; j < rows; ++j) {
        cube += gram[i * rows + j] * x[j * columns + k];
      }
      matrix[i * columns + k] = static_cast<float>(1.5 * x[i * columns + k] - 0.5 * cube);
    }
  }
}

class NewtonSchulz final : public train::MatrixRule {
 public:
  std::span<const std::string_view> states() const noexcept override {
    static constexpr std::array<std::string_view, 2> names{"ns_momentum", "ns_gradient"};
    return names;
  }
  std::int64_t scratch_elements(const Shape& /*whole*/, const Shape& part) const noexcept override {
    return part.elements();
  }
  void update(const train::MatrixShard& shard, parallel::WholeMatrices& matrices,
              const train::UpdateStep& step, device::StreamRef stream) const override {
    const std::int64_t elements = shard.master.elements();
    const auto flat = [&](const TensorView& view) { return view.reshape(Shape{elements}); };
    if (elements > 0) {
      kernels::sgd({.lr = 0, .momentum = 0.5F, .gradient_scale = step.gradient_scale},
                   flat(shard.master), flat(shard.states[0]), flat(shard.gradient), {}, stream);
      device::copy(shard.states[1].data(), shard.gradient.data(), shard.gradient.bytes(), stream);
    }
    const TensorView whole = matrices.gather(shard.matrix, shard.states[0], stream);
    if (whole.shape() != shard.spec->shape) {
      throw std::logic_error("not whole");
    }
    const device::Buffer on_host(whole.bytes(), device::MemoryKind::pinned);
    device::copy(on_host.data(), whole.data(), whole.bytes(), stream);
    device::run_on_host(
        [data = on_host.data(), shape = whole.shape()] {
          newton_schulz(static_cast<float*>(data), shape);
        },
        stream);
    device::copy(whole.data(), on_host.data(), whole.bytes(), stream);
    stream.synchronize();  // work on the host may not free memory that the device knows
    if (elements > 0) {
      const TensorView direction = shard.scratch.rows(0, elements);
      matrices.cut(shard.matrix, whole, direction.reshape(shard.master.shape()), stream);
      kernels::sgd({.lr = static_cast<float>(step.lr)}, flat(shard.master), {}, direction, {},
                   stream);
    }
  }
  void reference_update(const Shape& shape, const train::Elements& whole,
                        const train::UpdateStep& step) const override {
    kernels::reference::sgd({.lr = 0, .momentum = 0.5F, .gradient_scale = step.gradient_scale},
                            whole.master, whole.states[0], whole.gradient, {}, {});
    device::copy(whole.states[1].data(), whole.gradient.data(), whole.gradient.bytes(), {});
    const auto* const momentum = whole.states[0].as<float>();
    std::vector<float> direction(momentum, momentum + shape.elements());
    newton_schulz(direction.data(), shape);
    kernels::reference::sgd({.lr = static_cast<float>(step.lr)}, whole.master, {},
                            {direction.data(), whole.master.shape()}, {}, {});
  }
};

using enum model::OptimizerGroup;

struct Case {
  MeshShape mesh;
  Options more;
  std::vector<model::OptimizerGroup> groups = {hidden_matrices};  ///< with such a rule
};

const std::vector<Case> cases{
    {{.dp = 2}, {}},
    {{.tp = 2}, {}},
    {{.tp = 4}, {"mesh.sequence_parallel=false"}},  // llama: two ranks hold a key/value head
    {{.pp = 2}, {"mesh.schedule=zb-h1"}},
    {{.cp = 2}, {}},
    {{.dp = 2}, {"mesh.zero=1"}},
    {{.dp = 2}, {"mesh.zero=2"}},
    {{.dp = 2}, {"mesh.zero=3"}},
    {{.dp = 4, .tp = 2}, {"mesh.zero=3", "mesh.tile_linear=3"}},
    {{.dp = 8}, {"mesh.zero=1"}},  // some have nothing of a matrix
    {{.pp = 2, .dp = 4}, {"mesh.zero=1", "mesh.zero_group=2"}},
    {{.pp = 2, .dp = 2, .tp = 2}, {"mesh.zero=3"}},
    {{}, {"offload.optimizer=cpu"}},
    {{.dp = 2, .tp = 2}, {"mesh.zero=2", "offload.optimizer=cpu"}},
    {{.dp = 2}, {"mesh.zero=1", "offload.optimizer=nvme:FOLDER", "offload.buffer_mb=0.1"}},
};

/// One rank's run of a few steps between two checkpoints.
struct Passage {
  fs::path from;  ///< empty: the initial weights
  fs::path to;    ///< empty: nothing is saved
  int first_step = 0;
  int steps = 0;
};

using Values = std::map<std::string, std::vector<float>>;

Values values_of(const train::TrainingState& state) {
  Values values;
  for (const io::Piece& piece : state.pieces()) {
    const auto* const first = static_cast<const float*>(piece.data.data());
    values[piece.id.str()].assign(first, first + piece.data.elements());
  }
  return values;
}

/// @return of a mesh of one rank, all state
Values pass(const runfile::RunConfig& config, const std::vector<model::OptimizerGroup>& groups,
            comm::Mesh& mesh, const Passage& passage) {
  const device::Stream stream;
  harness::SharedArena arena;
  const data::TokenDataset dataset(
      config.data.train, train::dataset_options(config, data::TokenDataset::Order::shuffled));
  train::ResolvedRun run = train::resolve_run({.config = config}, mesh.shape());
  for (const model::OptimizerGroup group : groups) {
    run.rules[static_cast<std::size_t>(group)] = std::make_shared<NewtonSchulz>();
  }
  train::StepRunner runner(run, mesh, arena);
  train::BatchLoader loader(dataset, run.batches, mesh.coordinate().dp,
                            train::held_tokens(mesh, config.model.context), arena);
  train::TrainingState state(run, runner.share(), runner.optimizer(), mesh);
  if (passage.from.empty()) {
    runner.initialise(7, stream);
  } else {
    io::CheckpointStore(passage.from).restore(state.wanted(), mesh.world().host());
    state.put(stream);
    runner.update_weights_from_masters(stream, passage.first_step);
  }
  for (int i = 0; i < passage.steps; ++i) {
    const int step = passage.first_step + i;
    runner.run(step, loader.load(step, step * config.train.global_batch, stream), 0.02, stream);
    runner.outcome(stream);
  }
  runner.prepare_save(stream);
  runner.synchronize_state();
  state.fetch(stream);
  if (!passage.to.empty()) {
    io::CheckpointStore(passage.to)
        .save({.step = passage.first_step + passage.steps,
               .mesh = mesh.shape(),
               .scalars = {},
               .tensors = state.layouts(),
               .pieces = state.pieces()},
              mesh.world().host());
  }
  return mesh.shape().ranks() == 1 ? values_of(state) : Values();
}

Values pass(const TinyRun& tiny, const std::string& family, const Case& each,
            const Passage& passage) {
  Options options = test::joined(
      test::mesh_options(each.mesh),
      {"optim.name=sgd", "optim.momentum=0.5", "optim.clip_norm=0.5", "model.heads=4"});
  if (family == "llama") {
    options.emplace_back("model.kv_heads=2");
  }
  for (std::string more : each.more) {
    if (const std::size_t at = more.find("FOLDER"); at != std::string::npos) {
      more.replace(at, 6, tiny.folder().string());
    }
    options.push_back(std::move(more));
  }
  const runfile::RunConfig config = tiny.config(3, "none", options).config;
  Values values;
  comm::run_device_ranks(static_cast<int>(each.mesh.ranks()), [&](comm::Communicator& world) {
    comm::Mesh mesh(each.mesh, world);
    Values mine = pass(config, each.groups, mesh, passage);
    if (world.size() == 1) {
      values = std::move(mine);
    }
  });
  return values;
}

/// As one rank reads it.
Values saved(const TinyRun& tiny, const std::string& family, const fs::path& folder,
             const Case& one_rank = {}) {
  return pass(tiny, family, one_rank, {.from = folder, .to = {}});
}

/// The largest |b - a| / |a| of a tensor, in the L2 norm.
double largest_error(const Values& a, const Values& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (const auto& [name, values] : a) {
    const std::vector<float>& other = b.at(name);
    REQUIRE(values.size() == other.size());
    double off = 0;
    double squares = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      off += std::pow(double{other[i]} - values[i], 2);
      squares += std::pow(double{values[i]}, 2);
    }
    // gradients of key biases are nothing but rounding
    if (name.find("k_proj.bias") == std::string::npos || squares > 1e-12) {
      largest = std::max(largest, std::sqrt(off / squares));
    }
  }
  return largest;
}

/// Two steps on each mesh of `cases`, of which it asks for no more than `one_rank`.
/// @return of one rank the state after the first
Values check_every_mesh(const TinyRun& tiny, const std::string& family, const Case& one_rank) {
  const fs::path folder = tiny.checkpoints("one");
  const Values one = pass(tiny, family, one_rank, {.from = {}, .to = folder / "one", .steps = 1});
  // The second step, of one rank, from what one rank has saved.
  const Values two =
      pass(tiny, family, one_rank, {.from = folder / "one", .to = {}, .first_step = 1, .steps = 1});
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case each = cases[i];
    CAPTURE(family, each.mesh.str(), each.more);
    each.more = test::joined(each.more, one_rank.more);
    each.groups = one_rank.groups;
    const fs::path here = folder / std::to_string(i);
    pass(tiny, family, each, {.from = {}, .to = here / "a", .steps = 1});
    pass(tiny, family, each, {.from = {}, .to = here / "b", .steps = 1});
    const Values first = saved(tiny, family, here / "a", one_rank);
    CHECK(largest_error(one, first) <= 1e-6);
    CHECK(first == saved(tiny, family, here / "b", one_rank));  // every bit
    // What one rank has saved goes on here: unchanged, and to the same second step.
    pass(tiny, family, each, {.from = folder / "one", .to = here / "moved"});
    CHECK(saved(tiny, family, here / "moved", one_rank) == one);
    pass(tiny, family, each,
         {.from = folder / "one", .to = here / "second", .first_step = 1, .steps = 1});
    CHECK(largest_error(two, saved(tiny, family, here / "second", one_rank)) <= 1e-6);
  }
  return one;
}

}  // namespace

TEST_CASE("one Newton-Schulz step on whole matrices is that of one rank on every mesh",
          "[matrix_rule]") {
  const std::string family = GENERATE("gpt2", "llama");
  const Values one = check_every_mesh(TinyRun(family), family, {});
  const std::string matrix = "layers.0.attn.q_proj.weight/";
  CHECK(one.contains(matrix + "ns_momentum"));
  CHECK(one.contains(matrix + "ns_gradient"));
  CHECK_FALSE(one.contains(matrix + "momentum"));
  CHECK(one.contains("embedding.token.weight/momentum"));
  CHECK_FALSE(one.contains("embedding.token.weight/ns_momentum"));
}

TEST_CASE("a rule of whole matrices may be that of embeddings and head", "[matrix_rule]") {
  const std::string family = GENERATE("gpt2", "llama");  // tied, and not
  Case one_rank{{}, {R"(model.frozen=["*norm.weight", "*.bias"])"}, {others}};
  if (family == "llama") {
    one_rank = {{},
                {R"(model.frozen=["*norm.weight"])", "model.tie_embeddings=false"},
                {hidden_matrices, others}};
  }
  const Values one = check_every_mesh(TinyRun(family), family, one_rank);
  CHECK(one.contains("embedding.token.weight/ns_momentum"));
  CHECK(one.contains("lm_head.weight/ns_momentum") == (family == "llama"));
  CHECK(one.contains("layers.0.attn.q_proj.weight/ns_momentum") == (family == "llama"));
  CHECK_FALSE(one.contains("final_norm.weight/ns_momentum"));
}

TEST_CASE("a rule of whole matrices is refused for what is no matrix", "[matrix_rule]") {
  const TinyRun tiny("llama");
  const auto start_on = [&](const MeshShape& mesh) {
    pass(tiny, "llama", {mesh, {}, {others}}, {.from = {}, .to = {}});
  };
  CHECK_THROWS_MATCHES(start_on({}), UserError,
                       MessageMatches(ContainsSubstring("layers.0.attn_norm.weight is no matrix")));
  CHECK_THROWS_AS(start_on({.pp = 2}), UserError);
}

TEST_CASE("what is frozen keeps its bits on every mesh, and the rest trains as without it",
          "[matrix_rule]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const fs::path folder = tiny.checkpoints("frozen");
  const Options frozen{R"(model.frozen=["embedding.*", "layers.1.attn.*", "*.down_proj.weight"])"};
  const auto is_frozen = [](const std::string& name) {
    return name.starts_with("embedding.") || name.starts_with("layers.1.attn.") ||
           name.find(".down_proj.weight") != std::string::npos;
  };
  const Values before = pass(tiny, family, {{}, frozen}, {.from = {}, .to = {}});
  const Values one =
      pass(tiny, family, {{}, frozen}, {.from = {}, .to = folder / "one", .steps = 2});
  REQUIRE(before.size() == one.size());
  int kept = 0;
  for (const auto& [name, values] : one) {
    CAPTURE(name);
    if (is_frozen(name)) {
      CHECK(values == before.at(name));
      CHECK(name.ends_with("/master"));  // and no state
      ++kept;
    } else if (name.find("k_proj.bias") == std::string::npos) {
      CHECK(values != before.at(name));
    }
  }
  CHECK(kept == (family == "gpt2" ? 2 + 8 + 2 : 1 + 4 + 2));
  // Without clipping a first update knows nothing of what else is trained.
  const Options unclipped{"optim.clip_norm=1e9"};
  Options both = frozen;
  both.push_back(unclipped[0]);
  const Values all = pass(tiny, family, {{}, unclipped}, {.from = {}, .to = {}, .steps = 1});
  for (const auto& [name, values] :
       pass(tiny, family, {{}, both}, {.from = {}, .to = {}, .steps = 1})) {
    CAPTURE(name);
    CHECK((values == all.at(name)) == (!is_frozen(name) || all.at(name) == before.at(name)));
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Case each = cases[i];
    CAPTURE(family, each.mesh.str(), each.more);
    each.more.push_back(frozen[0]);
    const fs::path here = folder / std::to_string(i);
    pass(tiny, family, each, {.from = {}, .to = here, .steps = 2});
    const Values values = saved(tiny, family, here, {{}, frozen});
    CHECK(largest_error(one, values) <= 1e-6);
    for (const auto& [name, numbers] : before) {
      CHECK((!is_frozen(name) || values.at(name) == numbers));
    }
  }
  // Replicas that train by themselves: in f32 the mean of three equal numbers is not always that
  // number.
  const Case local{{.dp = 3},
                   {"mesh.dp_mode=local", "mesh.average_every=1", "train.global_batch=12",
                    "train.micro_batch=1", frozen[0]}};
  pass(tiny, family, local, {.from = {}, .to = folder / "local", .steps = 2});
  for (const auto& [name, numbers] : saved(tiny, family, folder / "local", {{}, frozen})) {
    CAPTURE(name);
    CHECK((!is_frozen(name) || numbers == before.at(name)));
  }
}

TEST_CASE("what is frozen has the same weights in bf16 wherever the state is", "[matrix_rule]") {
  const std::string family = "llama";
  const TinyRun tiny(family);
  const Options rounding =
      GENERATE(Options{}, Options{"optim.stochastic_rounding=true", "mesh.dp_reduce=step"});
  Options frozen{R"(model.frozen=["embedding.*", "layers.0.*"])", "train.precision=bf16"};
  frozen.insert(frozen.end(), rounding.begin(), rounding.end());
  const fs::path folder = tiny.checkpoints("frozen_bf16");
  const Values whole = pass(tiny, family, {{}, frozen}, {.from = {}, .to = {}, .steps = 3});
  pass(tiny, family, {{}, frozen}, {.from = {}, .to = folder / "two", .steps = 2});
  CHECK(pass(tiny, family, {{}, frozen},
             {.from = folder / "two", .to = {}, .first_step = 2, .steps = 1}) == whole);
  Options offloaded = frozen;
  offloaded.emplace_back("offload.optimizer=cpu");
  CHECK(pass(tiny, family, {{}, offloaded}, {.from = {}, .to = {}, .steps = 3}) == whole);
}

TEST_CASE("weights in bf16 follow masters that a matrix rule makes", "[matrix_rule]") {
  const std::string family = "llama";
  const TinyRun tiny(family);
  const fs::path folder = tiny.checkpoints("bf16");
  const Options precision{"train.precision=bf16"};
  const Values whole = pass(tiny, family, {{}, precision}, {.from = {}, .to = {}, .steps = 3});
  pass(tiny, family, {{}, precision}, {.from = {}, .to = folder / "two", .steps = 2});
  CHECK(pass(tiny, family, {{}, precision},
             {.from = folder / "two", .to = {}, .first_step = 2, .steps = 1}) == whole);
  CHECK(pass(tiny, family, {{}, {"train.precision=bf16", "offload.optimizer=cpu"}},
             {.from = {}, .to = {}, .steps = 3}) == whole);
}
