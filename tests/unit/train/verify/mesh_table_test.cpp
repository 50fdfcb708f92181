// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The table of what fourfold can do (rows) and of how ranks may be laid out (columns). Each cell
/// trains a few steps, which have to be those of one rank, or to the bit those of the same ranks
/// without the feature; or it is refused, with the reason of the table.
/// FOURFOLD_MESH_TABLE=1/4 takes one of four parts of the columns; else it is all of them.
#include "mesh_traces.hpp"
#include "run/tiny_run.hpp"
#include "step/worst_difference.hpp"

#include <fourfold/base/error.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cstddef>
#include <cstdlib>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

using namespace fourfold;
using test::joined;
using test::MeshTrace;
using test::Options;
using test::RunTrace;
using test::TinyRun;

namespace {

/// Four layers and eight heads (llama: on two key/value heads, so that ranks share them); a
/// vocabulary of 53, which nothing divides; dropout; clipping that bites; buckets smaller than a
/// unit. Adam makes full steps of gradients that are rounding noise: a small rate keeps that small.
Options model_options(const std::string& family) {
  Options options{"model.layers=4",         "model.heads=8",        "model.dropout=0.1",
                  "optim.lr=1e-3",          "optim.warmup_steps=0", "optim.clip_norm=0.5",
                  "mesh.dp_bucket_mb=0.005"};
  if (family == "llama") {
    options.emplace_back("model.kv_heads=2");
  }
  return options;
}

/// A column: a mesh, and how its ranks share the work.
struct Column {
  std::string name;
  comm::MeshShape mesh;
  Options options;
};

const std::vector<Column> columns{
    {"one", {}, {}},
    {"dp2", {.dp = 2}, {}},
    {"dp2 zero 2", {.dp = 2}, {"mesh.zero=2"}},
    {"dp2 zb-v", {.dp = 2}, {"mesh.schedule=zb-v", "mesh.chunks=2", "mesh.zero=2"}},
    {"dp4 in groups", {.dp = 4}, {"mesh.zero=3", "mesh.zero_group=2", "mesh.dp_reduce=step"}},
    {"dp8 zero 1", {.dp = 8}, {"mesh.zero=1"}},  // some have nothing of a matrix
    {"tp2", {.tp = 2}, {}},
    {"tp4 all rows", {.tp = 4}, {"mesh.sequence_parallel=false"}},
    {"dp2.tp4 zero 3",  // llama: ranks share key/value heads
     {.dp = 2, .tp = 4},
     {"mesh.sequence_parallel=false", "mesh.zero=3", "mesh.dp_reduce=step"}},
    {"cp4 zero 3", {.cp = 4}, {"mesh.zero=3"}},
    {"dp2.cp4 allgather",
     {.dp = 2, .cp = 4},
     {"mesh.context_mode=allgather", "mesh.zero=1", "mesh.zero_group=2"}},
    {"cp2.tp2 ulysses", {.cp = 2, .tp = 2}, {"mesh.context_mode=ulysses", "mesh.zero=3"}},
    {"dp2.cp2.tp2 zero 1", {.dp = 2, .cp = 2, .tp = 2}, {"mesh.zero=1"}},
    {"pp2 naive", {.pp = 2}, {"mesh.schedule=naive", "mesh.stage_layers=[3,1]"}},
    {"pp2 head alone", {.pp = 2}, {"mesh.schedule=naive", "mesh.stage_layers=[4,0]"}},
    {"pp2 embedding alone", {.pp = 2}, {"mesh.schedule=gpipe", "mesh.stage_layers=[0,4]"}},
    {"pp2.dp4 1f1b",
     {.pp = 2, .dp = 4},
     {"mesh.schedule=1f1b", "mesh.zero=1", "mesh.zero_group=2", "mesh.dp_reduce=step"}},
    {"pp4.dp2 gpipe",
     {.pp = 4, .dp = 2},
     {"mesh.schedule=gpipe", "mesh.stage_layers=[0,2,1,1]", "mesh.zero=3"}},
    {"pp2.tp2 zb-v", {.pp = 2, .tp = 2}, {"mesh.schedule=zb-v", "mesh.stage_layers=[1,2,1,0]"}},
    {"pp2.dp2 zb-h1", {.pp = 2, .dp = 2}, {"mesh.schedule=zb-h1", "train.micro_batch=2"}},
    {"pp2.dp2.tp2 zb-h1",
     {.pp = 2, .dp = 2, .tp = 2},
     {"mesh.schedule=zb-h1", "mesh.zero=3", "mesh.dp_reduce=step"}},
    {"pp2.dp2.cp2 zb-v", {.pp = 2, .dp = 2, .cp = 2}, {"mesh.schedule=zb-v", "mesh.zero=3"}},
    {"pp2.cp2.tp2 interleaved",
     {.pp = 2, .cp = 2, .tp = 2},
     {"mesh.schedule=interleaved", "mesh.chunks=2"}},
};

bool everywhere(const comm::MeshShape& /*mesh*/) {
  return true;
}
/// Ranks share parameters: else the keys of the data plane have no effect.
bool data_plane(const comm::MeshShape& mesh) {
  return mesh.dp * mesh.cp > 1;
}

constexpr train::Tolerances f32{};
/// Sums in another order, rounded to 16 bits.
constexpr train::Tolerances f16{.loss = 2e-5, .gradient = 1e-2, .weight = 1e-2};
constexpr train::Tolerances bf16{.loss = 5e-4, .gradient = 1e-1, .weight = 1e-2};

enum class Models { gpt2, llama, both, both_tied_and_not };

/// A row: keys that turn a feature on.
struct Row {
  Options keys;
  Models models = Models::both;
  bool (*where)(const comm::MeshShape&) = everywhere;
  /// The same bits as with these keys on the same mesh; else the steps of one rank.
  std::optional<Options> bits_of = {};
  /// Of the run on one rank.
  Options one_rank_keys = {};
  train::Tolerances tolerances = f32;
  /// That of gradients in columns where more ranks add rounded numbers.
  std::map<std::string, double> gradient_tolerances = {};
  /// The loss differs at least so much: sums that travel rounded are others.
  double least_loss_error = 0;
  int steps = 3;
  /// What the program says where it refuses the cell.
  std::map<std::string, std::string> refused = {};
};

const Options plain;
/// Groups, and ZeRO 3 where it reduces micro-batches, add in another order.
const Options at_random{"train.precision=bf16", "optim.stochastic_rounding=true",
                        "mesh.dp_reduce=step", "mesh.zero_group=auto", "mesh.zero=0"};
const Options tiles_of_all{"mesh.zero=3", "mesh.tile_linear=3", "train.head_chunks=3",
                           "train.recompute=every:3"};

/// Traits of both families in one model, which is then neither's.
const Options mixed{"model.norm=rms", "model.positions=rotary", "model.no_rope_interval=2",
                    "model.gated=true", "model.qk_norm=true"};
const Options mixed_otherwise{"model.norm=layer", "model.positions=none", "model.gated=false",
                              "model.biases=true"};

Row zero(int stage, const std::string& reduce, Models models) {
  const Options sums{"mesh.zero_group=auto", "mesh.dp_reduce=" + reduce};
  return {.keys = joined(sums, {"mesh.zero=" + std::to_string(stage)}),
          .models = models,
          .where = data_plane,
          .bits_of = joined(sums, {"mesh.zero=0"})};
}

Row compressed(const std::string& codec, double gradient, double loss,
               std::map<std::string, double> gradient_tolerances = {}) {
  const std::string zero2 = "set mesh.zero to 1, or mesh.dp_reduce to \"step\"";
  return {.keys = {"mesh.dp_compress=\"" + codec + "\""},
          .where = data_plane,
          .tolerances = {.loss = loss, .gradient = gradient, .weight = 1e-4},
          .gradient_tolerances = std::move(gradient_tolerances),
          .least_loss_error = 1e-7,
          .steps = 5,
          .refused = {{"dp2 zero 2", zero2},
                      {"dp2 zb-v", zero2},
                      {"cp4 zero 3", zero2},
                      {"cp2.tp2 ulysses", zero2},
                      {"pp4.dp2 gpipe", zero2},
                      {"pp2.dp2.cp2 zb-v", zero2}}};
}

const std::vector<Row> rows{
    {.keys = plain},
    {.keys = plain, .models = Models::llama, .bits_of = plain},  // once again
    {.keys = mixed, .models = Models::gpt2, .one_rank_keys = mixed},
    {.keys = joined(mixed, {"train.recompute=selective"}),
     .models = Models::gpt2,
     .bits_of = mixed},
    {.keys = joined(mixed_otherwise, {"offload.activations=cpu"}),
     .models = Models::llama,
     .one_rank_keys = mixed_otherwise},
    {.keys = {"mesh.zero_group=auto", "mesh.dp_reduce=micro_batch", "mesh.zero=0"},
     .models = Models::gpt2,
     .where = data_plane},
    {.keys = {"mesh.zero_group=auto", "mesh.dp_reduce=step", "mesh.zero=0"},
     .models = Models::llama,
     .where = data_plane},
    zero(1, "micro_batch", Models::gpt2),
    zero(2, "micro_batch", Models::gpt2),
    zero(3, "micro_batch", Models::gpt2),
    zero(1, "step", Models::llama),
    zero(2, "step", Models::llama),
    zero(3, "step", Models::llama),
    {.keys = {"train.head_chunks=3"}, .models = Models::both_tied_and_not},
    {.keys = {"train.head_chunks=8"},
     .models = Models::both_tied_and_not,
     .refused = {{"cp4 zero 3", "set it to 4 or less"},
                 {"dp2.cp4 allgather", "set it to 4 or less"}}},
    {.keys = {"mesh.zero=3", "mesh.tile_linear=2"},
     .models = Models::both_tied_and_not,
     .where = data_plane},
    {.keys = {"mesh.zero=3", "mesh.tile_linear=2", "train.recompute=full"},
     .models = Models::gpt2,
     .where = data_plane},
    {.keys = {"mesh.zero=3", "mesh.tile_linear=3", "train.recompute=selective"},
     .models = Models::llama,
     .where = data_plane},
    {.keys = tiles_of_all, .models = Models::both_tied_and_not, .where = data_plane},
    {.keys = {"train.recompute=full"}, .bits_of = plain},
    {.keys = {"train.recompute=every:3"}, .bits_of = plain},
    {.keys = {"train.recompute=selective"}, .bits_of = plain},
    {.keys = {"offload.activations=cpu"}, .bits_of = plain},
    {.keys = joined(tiles_of_all, {"offload.activations=cpu"}),
     .where = data_plane,
     .bits_of = tiles_of_all},
    {.keys = {"train.precision=bf16"},
     .one_rank_keys = {"train.precision=bf16"},
     .tolerances = bf16},
    {.keys = {"train.precision=f16"},
     .one_rank_keys = {"train.precision=f16"},
     .tolerances = f16,
     .gradient_tolerances = {{"tp4 all rows", 1.5e-2}, {"dp2.tp4 zero 3", 1.5e-2}}},
    {.keys = {"train.precision=f16", "train.recompute=full", "offload.activations=cpu"},
     .models = Models::llama,
     .bits_of = Options{"train.precision=f16", "train.recompute=full"}},
    {.keys = {"train.precision=bf16", "train.recompute=selective", "offload.activations=cpu"},
     .models = Models::gpt2,
     .bits_of = Options{"train.precision=bf16", "train.recompute=selective"}},
    {.keys = {"train.precision=bf16", "offload.optimizer=cpu", "offload.buffer_mb=0.1"},
     .models = Models::llama,
     .bits_of = Options{"train.precision=bf16"}},
    {.keys = {"train.precision=bf16", "offload.optimizer=nvme:FOLDER", "offload.buffer_mb=0.1"},
     .models = Models::llama,
     .bits_of = Options{"train.precision=bf16"}},
    {.keys = joined(at_random, {"mesh.zero=3"}), .where = data_plane, .bits_of = at_random},
    {.keys = joined(at_random, {"offload.optimizer=cpu", "offload.buffer_mb=0.1"}),
     .bits_of = at_random},
    compressed("bf16", 0.02, 1e-3,
               {{"dp4 in groups", 0.03},
                {"dp8 zero 1", 0.03},
                {"dp2.cp4 allgather", 0.03},
                {"pp2.dp4 1f1b", 0.03}}),
    compressed("int8", 0.6, 5e-3,
               {{"dp2.tp4 zero 3", 0.8}, {"dp2.cp2.tp2 zero 1", 0.8}, {"pp2.dp2.tp2 zb-h1", 0.8}}),
    compressed("lowrank:2", 2.0, 2e-2),
    compressed("lowrank:4", 2.0, 2e-2),
};

/// Every bit of every step.
void check_same_bits(const MeshTrace& a, const MeshTrace& b) {
  REQUIRE(a.steps.size() == b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    CHECK(a.steps[i].loss == b.steps[i].loss);
    CHECK(a.steps[i].grad_norm == b.steps[i].grad_norm);
    const bool same_gradients = a.steps[i].gradients == b.steps[i].gradients;
    const bool same_weights = a.steps[i].weights == b.steps[i].weights;
    CHECK(same_gradients);  // thousands, which nobody wants to read
    CHECK(same_weights);
  }
}

void check_steps_of_one_rank(const MeshTrace& one, const MeshTrace& other, const Row& row,
                             const std::string& column) {
  train::Tolerances tolerances = row.tolerances;
  if (const auto wider = row.gradient_tolerances.find(column);
      wider != row.gradient_tolerances.end()) {
    tolerances.gradient = wider->second;
  }
  const train::MeshComparison result = test::compare(one, other, tolerances);
  CAPTURE(result.largest.loss, result.largest.gradient, result.largest.weight);
  CHECK(result.same_initial_weights);
  CHECK(result.ranks_agree);
  CHECK(result.first_difference.value_or("") == "");
  CHECK((other.mesh.ranks() == 1 || result.largest.loss >= row.least_loss_error));
}

/// The runs of one model, each made once.
class Runs {
 public:
  Runs(const std::string& family, bool tied)
      : tiny_(family),
        model_(joined(model_options(family),
                      {std::string("model.tie_embeddings=") + (tied ? "true" : "false")})) {}

  /// A new one. @throws UserError as training does
  MeshTrace trace(const comm::MeshShape& mesh, const Options& keys, int steps) const {
    Options options = joined(joined(model_, test::mesh_options(mesh)), keys);
    for (std::string& option : options) {
      if (const std::size_t at = option.find("FOLDER"); at != std::string::npos) {
        option.replace(at, 6, tiny_.folder().string());
      }
    }
    return test::trace_mesh(tiny_.config(steps, "none", options).config, mesh, steps);
  }
  const MeshTrace& on_one_rank(const Options& keys, int steps) {
    return once(on_one_rank_, {}, keys, steps);
  }
  const MeshTrace& in(const Column& column, const Options& keys, int steps) {
    return once(in_column_, column.mesh, joined(column.options, keys), steps);
  }
  void leave_column() { in_column_.clear(); }

 private:
  using Made = std::map<std::pair<Options, int>, MeshTrace>;

  const MeshTrace& once(Made& made, const comm::MeshShape& mesh, const Options& keys,
                        int steps) const {
    const auto found = made.find({keys, steps});
    return found != made.end()
               ? found->second
               : made.emplace(std::pair(keys, steps), trace(mesh, keys, steps)).first->second;
  }

  TinyRun tiny_;
  Options model_;
  Made on_one_rank_;
  Made in_column_;
};

void check_cell(Runs& runs, const Column& column, const Row& row) {
  if (const auto reason = row.refused.find(column.name); reason != row.refused.end()) {
    CHECK_THROWS_WITH(runs.in(column, row.keys, row.steps),
                      Catch::Matchers::ContainsSubstring(reason->second));
    return;
  }
  try {
    if (row.bits_of) {
      check_same_bits(runs.in(column, *row.bits_of, row.steps),
                      runs.trace(column.mesh, joined(column.options, row.keys), row.steps));
    } else {
      check_steps_of_one_rank(runs.on_one_rank(row.one_rank_keys, row.steps),
                              runs.in(column, row.keys, row.steps), row, column.name);
    }
  } catch (const UserError& error) {
    FAIL_CHECK("refused: " << error.what());
  }
}

bool has_row(Models models, const std::string& family, bool usually_tied) {
  return models == Models::both_tied_and_not ||
         (usually_tied &&
          (models == Models::both || family == (models == Models::gpt2 ? "gpt2" : "llama")));
}

/// Of FOURFOLD_MESH_TABLE.
bool takes(std::size_t column) {
  const char* const wanted = std::getenv("FOURFOLD_MESH_TABLE");
  if (wanted == nullptr) {
    return true;
  }
  std::size_t part = 0;
  std::size_t parts = 0;
  char slash = 0;
  std::istringstream text(wanted);
  text >> part >> slash >> parts;
  INFO("FOURFOLD_MESH_TABLE=" << wanted << " is not PART/PARTS, as 0/4");
  REQUIRE((text && slash == '/' && part < parts));
  return column % parts == part;
}

}  // namespace

TEST_CASE("every feature computes on every mesh what it does on one rank", "[mesh_table]") {
  const std::string family = GENERATE("gpt2", "llama");
  const bool tied = GENERATE(true, false);
  Runs runs(family, tied);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!takes(i)) {
      continue;
    }
    const Column& column = columns[i];
    for (const Row& row : rows) {
      if (has_row(row.models, family, tied == (family == "gpt2")) && row.where(column.mesh)) {
        CAPTURE(family, tied, column.name, row.keys, row.bits_of.value_or(Options{"one rank"}));
        check_cell(runs, column, row);
      }
    }
    runs.leave_column();
  }
}

TEST_CASE("a run on any mesh is validated and saved as that of one rank", "[mesh_table]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const Options options = model_options(family);
  const RunTrace one = tiny.train(1, 6, "one", options);
  REQUIRE(one.losses.size() == 6);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (!takes(i)) {
      continue;
    }
    const Column& column = columns[i];
    const std::string name = "column" + std::to_string(i);
    CAPTURE(family, column.name);
    const RunTrace cut = tiny.train_on(column.mesh, 6, name, joined(options, column.options));
    test::check_close(cut.losses, one.losses, 1e-5);
    test::check_close(cut.evaluations, one.evaluations, 1e-5);
    test::check_close(cut.norms, one.norms, 1e-4);
    const RunTrace restored = tiny.train(1, 6, name, options);  // nothing left to train
    CHECK(restored.losses.empty());
    CHECK(test::worst_difference(restored.weights, one.weights) <= 2e-4);
    CHECK(test::worst_difference(restored.moments, one.moments) <= 1e-4);
  }
}

TEST_CASE("a replica of any mesh trains as one of one rank does", "[mesh_table]") {
  const std::string outer = GENERATE("average", "nesterov");
  const TinyRun tiny("gpt2");
  const Options options =
      joined(model_options("gpt2"),
             {"mesh.dp_mode=local", "mesh.average_every=3", "optim.outer=" + outer});
  std::map<int, RunTrace> one_rank_each;  // by the number of replicas
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    const int replicas = column.mesh.dp;
    if (!takes(i) || replicas == 1) {
      continue;
    }
    CAPTURE(column.name, outer);
    const auto train = [&] {
      return tiny.train_on(
          column.mesh, 7, "column" + std::to_string(i),
          joined(joined(options, column.options), outer == "average" ? plain : tiles_of_all));
    };
    if (column.name == "dp4 in groups" || column.name == "pp2.dp4 1f1b") {
      CHECK_THROWS_WITH(train(), Catch::Matchers::ContainsSubstring(
                                     "mesh.zero_group = 2 does not divide mesh.cp = 1"));
      continue;
    }
    if (!one_rank_each.contains(replicas)) {
      one_rank_each[replicas] =
          tiny.train(replicas, 7, "alone" + std::to_string(replicas), options);
    }
    const RunTrace trace = train();
    test::check_close(trace.losses, one_rank_each[replicas].losses, 1e-5);
    test::check_close(trace.norms, one_rank_each[replicas].norms, 1e-3);
  }
}
