// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A stage whose matrices are in memory tile by tile against one that has them whole.
#include "shared_arena.hpp"
#include "small_models.hpp"

#include <fourfold/model/flat_memory.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using fourfold::Box;
using fourfold::DType;
using fourfold::Range;
using fourfold::TensorView;
using fourfold::device::StreamRef;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::Gradients;
using fourfold::model::MatrixMemory;
using fourfold::model::ParallelHooks;
using fourfold::model::Parameter;
using fourfold::model::Parameters;
using fourfold::model::ParameterSpec;
using fourfold::model::Segment;
using fourfold::model::StageOptions;
using fourfold::model::UnitRange;
using fourfold::model::WeightGroup;
using fourfold::model_test::Model;
using fourfold::model_test::options_for;
using fourfold::model_test::OwnedBatch;
using fourfold::model_test::small;

namespace device = fourfold::device;
namespace model = fourfold::model;

using namespace fourfold::model_test::usual;

namespace {

void fill(const TensorView& view, float value) {
  if (view.dtype() == DType::f32) {
    std::fill_n(view.as<float>(), view.elements(), value);
  } else if (view.dtype() == DType::bf16) {
    std::fill_n(view.as<fourfold::BFloat16>(), view.elements(), fourfold::BFloat16(value));
  } else {
    std::fill_n(view.as<fourfold::Float16>(), view.elements(), fourfold::Float16(value));
  }
}

/// Brings tiles from a model that is whole, and what is added to their gradients to memory that is.
/// What is not there is no number.
class TileHooks : public ParallelHooks {
 public:
  TileHooks(const Parameters& whole, const Parameters& tiled)
      : whole_(whole),
        tiled_(tiled),
        gradients_(static_cast<std::size_t>(tiled.layout().elements), 0.0F) {
    for (const Segment& segment : tiled.layout().segments) {
      if (segment.unit == Segment::every_unit) {
        bring(segment);
        fill(tiled.gradient_memory().at(segment.flat), 0);
      } else {
        fill(tiled.weight_memory().at(segment.flat), std::numeric_limits<float>::quiet_NaN());
        fill(tiled.gradient_memory().at(segment.flat), std::numeric_limits<float>::quiet_NaN());
      }
    }
  }

  /// By flat element, once the vectors are in.
  std::vector<float> gradients() {
    const Segment& vectors = tiled_.layout().segments.back();
    add(vectors);
    return gradients_;
  }
  int gathers() const { return gathers_; }

  void acquire_weights(WeightGroup part, StreamRef /*stream*/) override {
    if (const Segment* tile = tile_of(part)) {
      bring(*tile);
      ++gathers_;
    }
  }
  void release_weights(WeightGroup part, StreamRef /*stream*/) override {
    if (const Segment* tile = tile_of(part)) {
      fill(tiled_.weight_memory().at(tile->flat), std::numeric_limits<float>::quiet_NaN());
    }
  }
  void gradients_needed(WeightGroup part, StreamRef /*stream*/) override {
    if (const Segment* tile = tile_of(part)) {
      fill(tiled_.gradient_memory().at(tile->flat), 0);
    }
  }
  void gradients_ready(WeightGroup part, Gradients state, StreamRef /*stream*/) override {
    if (const Segment* tile = tile_of(part)) {
      CHECK(state == Gradients::partial);
      add(*tile);
      fill(tiled_.gradient_memory().at(tile->flat), std::numeric_limits<float>::quiet_NaN());
    }
  }

 private:
  const Segment* tile_of(WeightGroup part) const {
    const auto& segments = tiled_.layout().segments;
    const auto found = std::ranges::find_if(segments, [&](const Segment& segment) {
      return segment.tile != WeightGroup::whole && segment.part() == part;
    });
    return found == segments.end() ? nullptr : &*found;
  }
  void bring(const Segment& segment) const {
    const TensorView to = tiled_.weight_memory().at(segment.flat);
    const TensorView from = whole_.weights().rows(segment.flat.begin, segment.flat.count);
    device::copy(to.data(), from.data(), to.bytes(), stream);
  }
  void add(const Segment& segment) {
    const auto* added = tiled_.gradient_memory().at(segment.flat).as<float>();
    for (std::int64_t i = 0; i < segment.flat.count; ++i) {
      gradients_[static_cast<std::size_t>(segment.flat.begin + i)] += added[i];
    }
  }

  const Parameters& whole_;
  const Parameters& tiled_;
  std::vector<float> gradients_;
  int gathers_ = 0;
};

/// The same units as a whole model, in tiles.
struct TiledModel {
  TiledModel(const Architecture& config, const Model& whole, StageOptions options, int tiles)
      : parameters(table_of(config), whole_boxes(table_of(config)),
                   whole.parameters.compute_dtype(), arena,
                   {.weights = MatrixMemory::double_buffered,
                    .gradients = MatrixMemory::double_buffered,
                    .masters = false,
                    .blocks = {1, model::all_units(config).end - 1},
                    .tiles = tiles}),
        hooks(whole.parameters, parameters) {
    options.tiles = true;
    stage = std::make_unique<model::Stage>(config, model::all_units(config), parameters, hooks,
                                           arena, options);
    arena.seal();
  }
  static std::vector<ParameterSpec> table_of(const Architecture& config) {
    return model::parameter_table(config);
  }

  fourfold::harness::SharedArena arena;
  Parameters parameters;
  TileHooks hooks;
  std::unique_ptr<model::Stage> stage;
};

/// Two micro-batches in flight, the second a short one. Returns the losses.
std::vector<float> two_in_flight(model::Stage& stage, const Architecture& config, bool split) {
  const OwnedBatch first(config, sequences, tokens, 1);
  const OwnedBatch second(config, 1, tokens - 2, 2);
  stage.forward_train(0, first.view(), scale, stream);
  stage.forward_train(1, second.view(), scale, stream);
  for (const int slot : {0, 1}) {
    if (split) {
      stage.backward_input(slot, stream);
    } else {
      stage.backward(slot, slot == 1 ? Gradients::complete : Gradients::partial, stream);
    }
  }
  std::vector<float> losses;
  for (const int slot : {0, 1}) {
    if (split) {
      stage.backward_weight(slot, slot == 1 ? Gradients::complete : Gradients::partial, stream);
    }
    const TensorView loss = stage.loss(slot);
    losses.insert(losses.end(), loss.as<float>(), loss.as<float>() + loss.elements());
  }
  return losses;
}

/// The largest difference, as a share of the largest of `expected`. Not a number: not near.
double worst_error(const float* got, const float* expected, std::int64_t count) {
  double largest = 0;
  double difference = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double apart = std::abs(static_cast<double>(got[i]) - expected[i]);
    difference = std::isfinite(apart) ? std::max(difference, apart) : 1e30;
  }
  return largest > 1e-7 ? difference / largest : difference;  // k_proj.bias of gpt2 is zero
}

}  // namespace

TEST_CASE("a stage in tiles computes what it does whole, one tile in memory at a time", "[tiles]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const bool tied = GENERATE(false, true);
  const bool split = GENERATE(false, true);
  const std::string recompute = GENERATE("none", "every:2", "selective");
  const int head_chunks = GENERATE(1, 3);
  const DType compute = GENERATE(DType::f32, DType::bf16);
  const Architecture config = small(family, 0.2, tied);
  StageOptions options = options_for(sequences, tokens, 2);
  options.recompute = *model::recompute_named(recompute);
  options.head_chunks = head_chunks;
  options.backward = split ? StageOptions::Backward::split : StageOptions::Backward::fused;
  const double tolerance = compute == DType::f32 ? 1e-5 : 2e-2;
  ParallelHooks alone;
  Model whole(config, model::all_units(config), options, alone, compute);
  const std::vector<float> losses = two_in_flight(*whole.stage, config, split);
  for (const int tiles : {2, 3, 30}) {  // of 24, 37 and 41 rows, and more; 30 is more than 24
    CAPTURE(model::name(family), tied, split, recompute, head_chunks, fourfold::name(compute));
    CAPTURE(tiles);
    TiledModel tiled(config, whole, options, tiles);
    const std::vector<float> got = two_in_flight(*tiled.stage, config, split);
    REQUIRE(got.size() == losses.size());
    CHECK(worst_error(got.data(), losses.data(), static_cast<std::int64_t>(got.size())) <=
          tolerance);
    const std::vector<float> gradients = tiled.hooks.gradients();
    for (const Parameter& parameter : whole.parameters) {
      CAPTURE(parameter.spec.name);
      CHECK(worst_error(gradients.data() + parameter.flat.begin, parameter.gradient.as<float>(),
                        parameter.flat.count) <= tolerance);
    }
    CHECK(tiled.hooks.gathers() > 0);
  }
}

TEST_CASE("tiles of the forward pass give what whole matrices give", "[tiles]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const DType compute = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Architecture config = small(family, 0.2);
  const StageOptions options = options_for(sequences, tokens, 2);
  ParallelHooks alone;
  Model whole(config, model::all_units(config), options, alone, compute);
  TiledModel tiled(config, whole, options, 3);
  const OwnedBatch batch(config, sequences, tokens, 1);
  whole.stage->forward_evaluate(0, batch.view(), stream);
  tiled.stage->forward_evaluate(0, batch.view(), stream);
  const TensorView expected = whole.stage->logits(0);
  const TensorView got = tiled.stage->logits(0);
  CAPTURE(model::name(family), fourfold::name(compute));
  if (compute != DType::f32) {  // rounded to so few bits that sums in another order are the same
    CHECK(std::equal(static_cast<const std::byte*>(got.data()),
                     static_cast<const std::byte*>(got.data()) + got.bytes(),
                     static_cast<const std::byte*>(expected.data())));
    return;
  }
  // oneDNN may add up the last rows of a matrix in another order than those before, as with AVX2
  // it does.
  CHECK(worst_error(got.as<float>(), expected.as<float>(), got.elements()) < 1e-6);
}

TEST_CASE("tiles move no parameter, cover each matrix in whole rows and take turns", "[tiles]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const bool tied = GENERATE(false, true);
  const int tiles = GENERATE(2, 3, 7, 30);
  const Architecture config = small(family, 0, tied);
  const auto table = model::parameter_table(config);
  const std::vector<Box> boxes = whole_boxes(table);
  const model::FlatLayout whole = model::flat_layout(table, boxes);
  const model::FlatLayout cut = model::flat_layout(table, boxes, tiles);
  CHECK(cut.ranges == whole.ranges);
  CHECK(cut.elements == whole.elements);
  std::int64_t next = 0;
  for (const Segment& segment : cut.segments) {
    CHECK(segment.flat.begin == next);
    CHECK(segment.flat.count > 0);
    next = segment.flat.end();
  }
  CHECK(next == cut.elements);
  CHECK(cut.segments.back().unit == Segment::every_unit);
  for (std::size_t i = 0; i < table.size(); ++i) {
    std::int64_t pieces = 0;
    for (const Segment& segment : cut.segments) {
      const Range part = fourfold::intersection(segment.flat, cut.ranges[i]);
      if (!table[i].is_vector() && part.count > 0) {
        CAPTURE(table[i].name, tiles);
        CHECK((part.begin - cut.ranges[i].begin) % boxes[i].extent[1] == 0);
        CHECK(part.count % boxes[i].extent[1] == 0);
        CHECK(segment.unit == table[i].unit);
        ++pieces;
      }
    }
    if (!table[i].is_vector()) {
      const std::int64_t rows = boxes[i].extent[0];
      CHECK(pieces <= std::min<std::int64_t>(tiles, rows));
      const bool alone = !table[i].fused_with_previous &&
                         !table[i].name.ends_with("q_proj.weight") &&
                         !table[i].name.ends_with("gate_proj.weight");
      CHECK((!alone || pieces == std::min<std::int64_t>(tiles, rows)));
    }
  }

  fourfold::harness::SharedArena arena;
  const UnitRange blocks{1, model::all_units(config).end - 1};
  const model::FlatMemory memory(cut, MatrixMemory::double_buffered, blocks,
                                 device::MemoryUse::weights, DType::f32, arena);
  std::int64_t largest_of_blocks = 0;
  std::int64_t largest_of_ends = 0;
  for (std::size_t i = 0; i + 1 < cut.segments.size(); ++i) {
    const Segment& segment = cut.segments[i];
    const bool is_block = blocks.contains(segment.unit);
    std::int64_t& largest = is_block ? largest_of_blocks : largest_of_ends;
    largest = std::max(largest, segment.flat.count);
    const Segment& then = cut.segments[i + 1];
    if (then.unit != Segment::every_unit && is_block == blocks.contains(then.unit)) {
      CHECK(memory.buffer_of(segment.part()) != memory.buffer_of(then.part()));
    }
    CHECK(memory.buffer_of(segment.unit) == model::FlatMemory::own_memory);  // not as a whole
  }
  const auto bytes = static_cast<std::int64_t>(arena.bytes(device::MemoryUse::communication));
  CHECK(bytes <= 2 * 4 * (largest_of_blocks + largest_of_ends));
  CHECK(bytes > 4 * (largest_of_blocks + largest_of_ends));
  CHECK(memory.holds(cut.segments.front().flat));
  CHECK(!memory.holds(whole.matrices(1)));
}
