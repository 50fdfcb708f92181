// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The default hooks, the order in which a stage calls them, and the proof that the interface is
/// enough for tensor and sequence parallelism: two ranks (threads of this test) against one.
#include "shared_arena.hpp"
#include "small_models.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <algorithm>
#include <array>
#include <barrier>
#include <cmath>
#include <optional>
#include <string>
#include <thread>
#include <vector>

using Catch::Matchers::WithinRel;
using fourfold::Box;
using fourfold::ConstTensorView;
using fourfold::DType;
using fourfold::Range;
using fourfold::Shape;
using fourfold::TensorView;
using fourfold::device::StreamRef;
using fourfold::device::Tensor;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::Gradients;
using fourfold::model::ParallelHooks;
using fourfold::model::Parameter;
using fourfold::model::ParameterSpec;
using fourfold::model::WeightGroup;
using fourfold::model_test::Model;
using fourfold::model_test::options_for;
using fourfold::model_test::OwnedBatch;
using fourfold::model_test::small;

namespace kernels = fourfold::kernels;
namespace model = fourfold::model;

namespace {

/// Writes down which unit was announced how.
class Recorder : public ParallelHooks {
 public:
  std::vector<std::string> calls;

  /// Units that are announced, and then whose gradients are about to be added to.
  std::vector<int> ahead;
  std::vector<int> written;

  /// Of attention's backward pass, whether it is to give the same bits every time.
  std::vector<bool> deterministic;

  void attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                          kernels::ConstHeads k, kernels::ConstHeads v, kernels::ConstHeads out,
                          kernels::ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                          kernels::Heads dq, kernels::Heads dk, kernels::Heads dv,
                          StreamRef stream) override {
    deterministic.push_back(shape.deterministic);
    ParallelHooks::attention_backward(shape, q, k, v, out, dout, lse_BNT, delta_BNT, dq, dk, dv,
                                      stream);
  }
  void prefetch_weights(WeightGroup part) override { ahead.push_back(part.unit); }
  void gradients_needed(WeightGroup part, StreamRef /*stream*/) override {
    written.push_back(part.unit);
  }
  void acquire_weights(WeightGroup part, StreamRef /*stream*/) override {
    calls.push_back("need " + std::to_string(part.unit));
  }
  void release_weights(WeightGroup part, StreamRef /*stream*/) override {
    calls.push_back("done " + std::to_string(part.unit));
  }
  void gradients_ready(WeightGroup part, Gradients state, StreamRef /*stream*/) override {
    calls.push_back((state == Gradients::complete ? "complete " : "partial ") +
                    std::to_string(part.unit));
  }
};

/// What two ranks show each other between two barriers.
struct Meeting {
  std::barrier<> both{2};
  std::array<const float*, 2> shown{};
};

/// Rank `rank` of two on the tensor axis, f32, memory that host and device reach.
class TensorPair : public ParallelHooks {
 public:
  TensorPair(Meeting& meeting, int rank, bool sequence_parallel)
      : meeting_(meeting), rank_(rank), sequence_parallel_(sequence_parallel) {}

  Range residual_rows(std::int64_t rows) const override {
    return sequence_parallel_ ? fourfold::even_part(rows, 2, rank_) : Range{0, rows};
  }
  bool adds_once() const override { return rank_ == 0; }

  ConstTensorView gather_rows(ConstTensorView x_RD, std::int64_t rows,
                              StreamRef /*stream*/) override {
    if (!sequence_parallel_) {
      return x_RD;
    }
    const std::int64_t features = x_RD.dim(1);
    gathered_ = Tensor(DType::f32, Shape{rows, features});
    meet(x_RD.as<float>());
    for (int peer = 0; peer < 2; ++peer) {
      const Range part = fourfold::even_part(rows, 2, peer);
      std::copy_n(meeting_.shown[static_cast<std::size_t>(peer)], part.count * features,
                  gathered_.as<float>() + part.begin * features);
    }
    meeting_.both.arrive_and_wait();
    return gathered_;
  }

  void reduce_rows(TensorView partial_TD, TensorView y_RD, StreamRef /*stream*/) override {
    meet(partial_TD.as<float>());
    const std::int64_t features = partial_TD.dim(1);
    const Range mine = residual_rows(partial_TD.dim(0));
    std::vector<float> sum(static_cast<std::size_t>(mine.count * features));
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const std::size_t element = static_cast<std::size_t>(mine.begin * features) + i;
      sum[i] = meeting_.shown[0][element] + meeting_.shown[1][element];
    }
    meeting_.both.arrive_and_wait();
    std::copy(sum.begin(), sum.end(), y_RD.as<float>());
  }

  void cross_entropy(model::VocabularyPart part, TensorView logits_TV, ConstTensorView target_T,
                     TensorView loss_T, std::optional<float> gradient_scale,
                     StreamRef stream) override {
    const std::int64_t rows = logits_TV.dim(0);
    const Tensor whole(DType::f32, Shape{rows, part.vocabulary});
    meet(logits_TV.as<float>());
    for (int peer = 0; peer < 2; ++peer) {
      const Range columns = fourfold::even_part(part.vocabulary, 2, peer);
      for (std::int64_t row = 0; row < rows; ++row) {
        std::copy_n(meeting_.shown[static_cast<std::size_t>(peer)] + row * columns.count,
                    columns.count, whole.as<float>() + row * part.vocabulary + columns.begin);
      }
    }
    meeting_.both.arrive_and_wait();
    ParallelHooks::cross_entropy({0, part.vocabulary}, whole, target_T, loss_T, gradient_scale,
                                 stream);
    for (std::int64_t row = 0; row < rows; ++row) {
      std::copy_n(whole.as<float>() + row * part.vocabulary + part.first_column, logits_TV.dim(1),
                  logits_TV.as<float>() + row * logits_TV.dim(1));
    }
  }

 private:
  void meet(const float* data) {
    meeting_.shown[static_cast<std::size_t>(rank_)] = data;
    meeting_.both.arrive_and_wait();
  }

  Meeting& meeting_;
  int rank_;
  bool sequence_parallel_;
  Tensor gathered_;
};

/// The part of a parameter that rank `rank` of two on the tensor axis holds.
Box tensor_box(const Architecture& config, const ParameterSpec& spec, int rank) {
  Box box = Box::whole(spec.shape);
  const auto cut = [&](std::size_t dim, std::int64_t unit) {
    const Range part = fourfold::even_part(spec.shape[dim] / unit, 2, rank);
    box.offset[dim] = part.begin * unit;
    box.extent[dim] = part.count * unit;
  };
  const auto named = [&](const char* part) { return spec.name.find(part) != std::string::npos; };
  if (named(".q_proj.") || named(".k_proj.") || named(".v_proj.")) {
    cut(0, config.attention.head_dim);
  } else if (named(".up_proj.") || named(".gate_proj.") || named("lm_head.") ||
             named("embedding.token.")) {
    cut(0, 1);
  } else if (named(".o_proj.weight")) {
    cut(1, config.attention.head_dim);
  } else if (named(".down_proj.weight")) {
    cut(1, 1);
  }
  return box;
}

/// One of the two ranks, with the initial weights of the whole model.
struct TensorRank {
  TensorRank(const Architecture& config, const Model& whole, ParallelHooks& hooks,
             const model::StageOptions& options, int rank)
      : parameters(model::parameter_table(config), boxes(config, rank), DType::f32, arena),
        stage(config, model::all_units(config), parameters, hooks, arena, options) {
    for (const Parameter& part : parameters) {
      const Parameter& source = whole.parameters.at(part.spec.name);
      fourfold::for_each_run(source.box, part.box, part.box, [&](const fourfold::Run& run) {
        std::copy_n(source.weight.as<float>() + run.source_element, run.elements,
                    part.weight.as<float>() + run.target_element);
      });
    }
  }

  static std::vector<Box> boxes(const Architecture& config, int rank) {
    std::vector<Box> result;
    for (const ParameterSpec& spec : model::parameter_table(config)) {
      result.push_back(tensor_box(config, spec, rank));
    }
    return result;
  }

  fourfold::harness::SharedArena arena;
  model::Parameters parameters;
  model::Stage stage;
};

/// This part of the whole gradient, dense.
std::vector<float> cut_out(const Parameter& whole, const Box& box) {
  std::vector<float> part(static_cast<std::size_t>(box.elements()));
  fourfold::for_each_run(whole.box, box, box, [&](const fourfold::Run& run) {
    std::copy_n(whole.gradient.as<float>() + run.source_element, run.elements,
                part.begin() + run.target_element);
  });
  return part;
}

double worst_error(const std::vector<float>& got, const std::vector<float>& expected) {
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  return largest > 1e-7 ? difference / largest : difference;  // k_proj.bias of gpt2 is zero
}

}  // namespace

TEST_CASE("units are announced around their use, gradients in backward order", "[hooks]") {
  const Architecture config = small(Family::gpt2);  // tied: the head reads unit 0
  Recorder hooks;
  Model model(config, model::all_units(config), options_for(1, 4), hooks);
  const OwnedBatch batch(config, 1, 4, 1);
  model.stage->forward_train(0, batch.view(), 1, {});
  CHECK(hooks.calls == std::vector<std::string>{"need 0", "done 0", "need 1", "done 1", "need 2",
                                                "done 2", "need 3", "done 3", "need 4", "need 0",
                                                "done 0", "done 4"});
  CHECK(hooks.ahead == std::vector{1, 2, 3, 0});  // each after the one before it
  CHECK(hooks.written.empty());
  hooks.calls.clear();
  hooks.ahead.clear();
  model.stage->backward(0, Gradients::partial, {});
  CHECK(hooks.calls == std::vector<std::string>{"need 4", "need 0", "done 0", "done 4", "partial 4",
                                                "need 3", "done 3", "partial 3", "need 2", "done 2",
                                                "partial 2", "need 1", "done 1", "partial 1",
                                                "partial 0"});
  CHECK(hooks.ahead == std::vector{3, 2, 1});
  CHECK(hooks.written == std::vector{0, 3, 2, 1, 0});  // the head adds to the embedding's
  hooks.calls.clear();
  model.stage->forward_train(0, batch.view(), 1, {});
  model.stage->backward(0, Gradients::complete, {});
  CHECK(std::count(hooks.calls.begin(), hooks.calls.end(), "complete 0") == 1);
  CHECK(hooks.calls.back() == "complete 0");
}

TEST_CASE("attention is as deterministic as a stage is told", "[hooks]") {
  const bool deterministic = GENERATE(true, false);
  const Architecture config = small(Family::gpt2);
  Recorder hooks;
  model::StageOptions options = options_for(1, 4);
  CHECK(options.deterministic_attention);
  options.deterministic_attention = deterministic;
  Model model(config, model::all_units(config), options, hooks);
  const OwnedBatch batch(config, 1, 4, 1);
  model.stage->forward_train(0, batch.view(), 1, {});
  model.stage->backward(0, Gradients::complete, {});
  CHECK(hooks.deterministic == std::vector<bool>(3, deterministic));
}

TEST_CASE("a head in chunks reads its matrix in the backward pass alone", "[hooks]") {
  const Architecture config = small(Family::gpt2, 0, false);
  const bool split = GENERATE(false, true);
  model::StageOptions options = options_for(1, 4);
  options.head_chunks = 2;
  if (split) {
    options.backward = model::StageOptions::Backward::split;
  }
  Recorder hooks;
  Model model(config, {3, 5}, options, hooks);
  const OwnedBatch batch(config, 1, 4, 1);
  model.stage->forward_train(0, batch.view(), 1, {});
  CHECK(hooks.calls == std::vector<std::string>{"need 3", "done 3", "need -1", "done -1"});
  CHECK(hooks.ahead == std::vector{4});  // a pipeline's last stage goes backward at once
  hooks.calls.clear();
  if (!split) {
    model.stage->backward(0, Gradients::complete, {});
    CHECK(hooks.calls == std::vector<std::string>{"need 4", "done 4", "complete 4", "need 3",
                                                  "done 3", "complete 3"});
    CHECK(hooks.written == std::vector{4, 3});
    return;
  }
  model.stage->backward_input(0, {});
  CHECK(hooks.calls ==
        std::vector<std::string>{"need 4", "done 4", "partial 4", "need 3", "done 3"});
  CHECK(hooks.written == std::vector{4});
  hooks.calls.clear();
  model.stage->backward_weight(0, Gradients::partial, {});
  CHECK(hooks.calls == std::vector<std::string>{"partial 3"});
  hooks.calls.clear();
  model.stage->backward_weight(0, Gradients::complete, {});
  CHECK(hooks.calls == std::vector<std::string>{"complete 4", "complete 3"});
  CHECK(hooks.written == std::vector{4, 3, 3});
}

namespace {

/// Counts the gathers that were and were not begun ahead.
class GatherCounter : public ParallelHooks {
 public:
  int hidden = 0;
  int exposed = 0;

  ConstTensorView gather_rows(ConstTensorView x_RD, std::int64_t /*rows*/,
                              StreamRef /*stream*/) override {
    const bool was_ahead = ahead_ != nullptr && ahead_ == x_RD.data();
    ++(was_ahead ? hidden : exposed);
    ahead_ = was_ahead ? nullptr : ahead_;
    return x_RD;
  }
  void prefetch_rows(ConstTensorView x_RD, std::int64_t /*rows*/, StreamRef /*stream*/) override {
    CHECK(ahead_ == nullptr);  // one at a time
    ahead_ = x_RD.data();
  }
  bool is_done() const { return ahead_ == nullptr; }

 private:
  const void* ahead_ = nullptr;
};

}  // namespace

TEST_CASE("what weight gradients gather again is gathered beside the products before", "[hooks]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const bool split = GENERATE(false, true);
  const Architecture config = small(family, 0.2);
  model::StageOptions options = options_for(1, 4);
  if (split) {
    options.backward = model::StageOptions::Backward::split;
  }
  GatherCounter hooks;
  Model model(config, model::all_units(config), options, hooks);
  const OwnedBatch batch(config, 1, 4, 1);
  model.stage->forward_train(0, batch.view(), 1, {});
  const int blocks = static_cast<int>(config.layers);
  CHECK(hooks.exposed == 2 * blocks + 1);
  hooks.exposed = 0;
  if (split) {
    model.stage->backward_input(0, {});
    CHECK(hooks.exposed == 2 * blocks);  // gradients that have only just been made
    CHECK(hooks.hidden == 0);
    hooks.exposed = 0;
    model.stage->backward_weight(0, Gradients::complete, {});
    CHECK(hooks.exposed == 1);  // the first
    CHECK(hooks.hidden == 4 * blocks + 1);
  } else {
    model.stage->backward(0, Gradients::complete, {});
    CHECK(hooks.exposed == 2 * blocks + 1);
    CHECK(hooks.hidden == 2 * blocks + 1);
  }
  CHECK(hooks.is_done());
}

TEST_CASE("recomputing a group announces each of its units once more", "[hooks]") {
  const Architecture config = small(Family::gpt2);  // three blocks: units 1 and 2, then unit 3
  Recorder hooks;
  model::StageOptions options = options_for(1, 4);
  options.recompute = *model::recompute_named("every:2");
  Model model(config, model::all_units(config), options, hooks);
  const OwnedBatch batch(config, 1, 4, 1);
  model.stage->forward_train(0, batch.view(), 1, {});
  hooks.calls.clear();
  model.stage->backward(0, Gradients::complete, {});
  CHECK(hooks.calls ==
        std::vector<std::string>{"need 4", "need 0", "done 0", "done 4", "complete 4",  //
                                 "need 3", "done 3", "complete 3",                      //
                                 "need 1", "done 1", "need 2", "done 2", "complete 2",  //
                                 "need 1", "done 1", "complete 1", "complete 0"});
}

TEST_CASE("the default hooks hold everything and change nothing", "[hooks]") {
  ParallelHooks hooks;
  CHECK(hooks.residual_rows(7) == Range{0, 7});
  CHECK(hooks.adds_once());
  std::vector<float> numbers{1, 2, 3, 4};
  const TensorView view(numbers.data(), Shape{2, 2});
  CHECK(hooks.gather_rows(view, 2, {}).data() == numbers.data());
  hooks.reduce_rows(view, view, {});
  CHECK(numbers == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("two tensor-parallel ranks compute what one does, with sequence parallelism too",
          "[hooks]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const bool sequence_parallel = GENERATE(false, true);
  const bool tied = GENERATE(false, true);
  const std::int64_t sequences = GENERATE(1, 2);  // 7 rows: ranks hold 4 and 3
  const std::string recompute = GENERATE("none", "every:2", "selective");
  const int head_chunks = GENERATE(1, 3);
  constexpr std::int64_t tokens = 7;
  const Architecture config = small(family, 0.2, tied);
  model::StageOptions options = options_for(sequences, tokens);
  const OwnedBatch batch(config, sequences, tokens, 1);
  ParallelHooks alone;
  Model whole(config, model::all_units(config), options_for(sequences, tokens), alone);
  whole.stage->forward_train(0, batch.view(), 0.1F, {});
  whole.stage->backward(0, Gradients::complete, {});
  options.recompute = *model::recompute_named(recompute);
  options.head_chunks = head_chunks;

  Meeting meeting;
  std::array<std::optional<TensorRank>, 2> ranks;
  std::vector<std::thread> threads;
  threads.reserve(ranks.size());
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      TensorPair hooks(meeting, rank, sequence_parallel);
      auto& mine = ranks[static_cast<std::size_t>(rank)];
      mine.emplace(config, whole, hooks, options, rank);
      mine->stage.forward_train(0, batch.view(), 0.1F, {});
      mine->stage.backward(0, Gradients::complete, {});
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }

  for (int rank = 0; rank < 2; ++rank) {
    const TensorRank& mine = *ranks[static_cast<std::size_t>(rank)];
    for (std::int64_t row = 0; row < sequences * tokens; ++row) {
      CHECK_THAT(mine.stage.loss(0).as<float>()[row],
                 WithinRel(whole.stage->loss(0).as<float>()[row], 1e-5F));
    }
    for (const Parameter& part : mine.parameters) {
      CAPTURE(part.spec.name, rank);
      std::vector<float> got(part.gradient.as<float>(),
                             part.gradient.as<float>() + part.flat.count);
      if (sequence_parallel && part.spec.name.find("norm") != std::string::npos) {
        // Each rank saw its rows only: the two shares add up.
        const auto* other = ranks[static_cast<std::size_t>(1 - rank)]
                                ->parameters.at(part.spec.name)
                                .gradient.as<float>();
        std::transform(got.begin(), got.end(), other, got.begin(), std::plus<>());
      }
      CHECK(worst_error(got, cut_out(whole.parameters.at(part.spec.name), part.box)) < 1e-4);
    }
  }
}
