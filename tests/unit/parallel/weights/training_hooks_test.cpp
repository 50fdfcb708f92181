// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"
#include "small_architecture.hpp"
#include "whole_model.hpp"

#include <fourfold/device/arena.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/parallel/collective_recorder.hpp>
#include <fourfold/parallel/gradient_reduction.hpp>
#include <fourfold/parallel/mesh_hooks.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/parallel/training_hooks.hpp>
#include <fourfold/parallel/weight_gathering.hpp>
#include <fourfold/parallel/zero.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using harness::Findings;
using harness::on_ranks;
using model_test::whole_boxes;

model::Architecture five_layers(bool tied) {
  return model_test::small_model({.layers = 5, .heads = 3, .ffn = 40, .vocab = 67, .tied = tied});
}

/// Whole numbers, so that sums over ranks are exact.
float addend(int rank, int micro_batch, std::int64_t element) {
  return static_cast<float>((element % 11) * (rank + 1) - element % 5 + micro_batch);
}

/// One rank's parameters and hooks, without a model between them.
class Bench {
 public:
  Bench(const model::Architecture& config, Communicator& world, const ZeroOptions& zero)
      : config_(config),
        stages_(schedule::whole_model(config)),
        mesh_({.dp = world.size()}, world),
        parameters_(model::parameter_table(config), whole_boxes(config), DType::f32, arena_,
                    parameter_memory(zero, config)),
        layout_(model::parameter_table(config), whole_boxes(config), parameters_.layout(),
                zero.shard_ranks),
        share_(make_share(parameters_, layout_, world.rank(), zero, arena_, arena_)),
        hooks_({config_, stages_, parameters_, share_, layout_}, mesh_, {}, {}, zero, {}, arena_) {}

  /// Adds a micro-batch's gradients as a stage does.
  void backward(int rank, int micro_batch, model::Gradients state) {
    const int head = static_cast<int>(config_.layers) + 1;
    for (int unit = head; unit >= 0; --unit) {
      if (unit == head && config_.tie_embeddings) {
        hooks_.gradients_needed(0, {});
        add_matrices(0, parameters_.at(model::token_embedding_name).flat, rank, micro_batch);
      }
      hooks_.gradients_needed(unit, {});
      add_matrices(unit, {0, parameters_.layout().elements}, rank, micro_batch);
      for (const model::Parameter& parameter : parameters_) {
        if (parameter.spec.unit == unit && parameter.spec.is_vector()) {
          add_to(parameter.gradient, parameter.flat, rank, micro_batch);
        }
      }
      hooks_.gradients_ready(unit, state, {});
    }
  }

  void train(int rank, int micro_batches) {
    hooks_.begin_step({});
    for (int i = 0; i < micro_batches; ++i) {
      backward(rank, i,
               i + 1 == micro_batches ? model::Gradients::complete : model::Gradients::partial);
    }
    hooks_.finish_gradients({});
    for (std::size_t i = parameters_.layout().segments.size(); i-- > 0;) {
      hooks_.wait_gradients(i, {});
    }
  }

  /// Elements of the share whose gradient is not the sum over all ranks and micro-batches.
  std::int64_t wrong_gradients(int ranks, int micro_batches) const {
    std::int64_t wrong = 0;
    for (const ParameterShard::Piece& piece : share_.pieces()) {
      const model::Parameter& parameter = *piece.parameter;
      const bool twice =
          config_.tie_embeddings && parameter.spec.name == model::token_embedding_name;
      const std::int64_t first = first_element(piece);
      for (std::int64_t i = 0; i < piece.gradient.elements(); ++i) {
        float expected = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
            expected += (twice ? 2.0F : 1.0F) * addend(rank, micro_batch, first + i);
          }
        }
        wrong += piece.gradient.as<float>()[i] != expected;
      }
    }
    return wrong;
  }

  /// Gives every master of the share a number of its own, and tells.
  void renew_weights(int version) {
    for (const ParameterShard::Piece& piece : share_.pieces()) {
      const std::int64_t first = first_element(piece);
      for (std::int64_t i = 0; i < piece.master.elements(); ++i) {
        piece.master.as<float>()[i] = static_cast<float>(first + i + 100'000 * version);
      }
    }
    for (std::size_t i = 0; i < parameters_.layout().segments.size(); ++i) {
      hooks_.weights_updated(i, {});
    }
  }

  /// Elements that a unit's products would read wrongly.
  std::int64_t wrong_weights(int unit, int version) {
    std::int64_t wrong = 0;
    hooks_.acquire_weights(unit, {});
    hooks_.prefetch_weights(unit + 1);
    for (const model::Segment& segment : parameters_.layout().segments) {
      const bool is_tile = segment.tile != model::WeightGroup::whole;
      if (segment.unit != unit && segment.unit != model::Segment::every_unit) {
        continue;
      }
      if (is_tile) {
        hooks_.acquire_weights(segment.part(), {});
        hooks_.prefetch_weights({unit, segment.tile + 1});
      }
      wrong += wrong_weights_of(segment.flat, unit, version);
      if (is_tile) {
        hooks_.release_weights(segment.part(), {});
      }
    }
    hooks_.release_weights(unit, {});
    return wrong;
  }

  std::int64_t elements(device::MemoryUse use) const {
    return static_cast<std::int64_t>(arena_.bytes(use)) / 4;
  }
  void record_into(CollectiveRecorder& recorder) { hooks_.record_into(&recorder); }
  /// By communicators of several ranks.
  std::multiset<std::string> moved() const {
    std::multiset<std::string> texts;
    for (const MovedMemory& moved : hooks_.moved_memory()) {
      if (moved.by->size() > 1) {
        texts.insert(fmt::format("{} by {}", name(moved.use), moved.by->name()));
      }
    }
    return texts;
  }
  std::int64_t vectors() const { return parameters_.layout().segments.back().flat.count; }

 private:
  /// Of the piece, in flat memory.
  std::int64_t first_element(const ParameterShard::Piece& piece) const {
    const Range flat = piece.parameter->flat;
    const std::int64_t row = flat.count / piece.parameter->box.extent[0];
    return flat.begin + (piece.box.offset[0] - piece.parameter->box.offset[0]) * row;
  }
  static void add_to(const TensorView& gradient, Range flat, int rank, int micro_batch) {
    for (std::int64_t i = 0; i < flat.count; ++i) {
      gradient.as<float>()[i] += addend(rank, micro_batch, flat.begin + i);
    }
  }
  /// To the parameters' elements of `range` in the matrices of a unit, or tile by tile.
  void add_matrices(int unit, Range range, int rank, int micro_batch) {
    for (const model::Segment& segment : parameters_.layout().segments) {
      const Range wanted = intersection(segment.flat, range);
      if (segment.unit != unit || wanted.count == 0) {
        continue;
      }
      const bool is_tile = segment.tile != model::WeightGroup::whole;
      if (is_tile) {
        hooks_.gradients_needed(segment.part(), {});
      }
      for (const model::Parameter& parameter : parameters_) {
        if (const Range part = intersection(wanted, parameter.flat); part.count > 0) {
          add_to(parameters_.gradient_memory().at(part), part, rank, micro_batch);
        }
      }
      if (is_tile) {
        hooks_.gradients_ready(segment.part(), model::Gradients::partial, {});
      }
    }
  }
  std::int64_t wrong_weights_of(Range range, int unit, int version) const {
    std::int64_t wrong = 0;
    for (const model::Parameter& parameter : parameters_) {
      const Range part = intersection(range, parameter.flat);
      if (parameter.spec.unit != unit || part.count == 0) {
        continue;
      }
      const TensorView weights = parameters_.weight_memory().at(part);
      for (std::int64_t i = 0; i < part.count; ++i) {
        wrong += weights.as<float>()[i] != static_cast<float>(part.begin + i + 100'000 * version);
      }
    }
    return wrong;
  }

  model::Architecture config_;
  schedule::StageLayout stages_;
  comm::Mesh mesh_;
  fourfold::harness::SharedArena arena_;
  model::Parameters parameters_;
  ShardLayout layout_;
  ParameterShard share_;
  TrainingHooks hooks_;
};

/// All ways to share parameters out among so many ranks.
std::vector<ZeroOptions> options_for(int ranks) {
  std::vector<ZeroOptions> all;
  for (const std::int64_t bucket_bytes : {4096, 1 << 24}) {
    for (const bool each_micro_batch : {false, true}) {
      for (const bool double_buffered : {false, true}) {
        for (int shard_ranks = 1; shard_ranks <= ranks; ++shard_ranks) {
          if (ranks % shard_ranks != 0 || (shard_ranks == 1 && double_buffered)) {
            continue;
          }
          for (const int tiles : {1, 3}) {
            if (tiles == 1 || double_buffered) {
              all.push_back({.shard_ranks = shard_ranks,
                             .reduce_each_micro_batch = each_micro_batch,
                             .gather_each_unit = double_buffered,
                             .tiles = tiles,
                             .bucket_bytes = bucket_bytes});
            }
          }
        }
      }
    }
  }
  return all;
}

std::string text_of(const ZeroOptions& zero) {
  return fmt::format("shared by {}, each micro-batch {}, in turn {}, tiles {}, buckets {}",
                     zero.shard_ranks, zero.reduce_each_micro_batch, zero.gather_each_unit,
                     zero.tiles, zero.bucket_bytes);
}

TEST_CASE("gradients of all ranks and micro-batches reach the share, however it is cut",
          "[training_hooks]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (const ZeroOptions& zero : options_for(world.size())) {
      Bench bench(five_layers(zero.bucket_bytes > 4096), world, zero);
      for (const int micro_batches : {3, 1, 2}) {  // again with buffers that have been used
        bench.train(world.rank(), micro_batches);
        const std::int64_t wrong = bench.wrong_gradients(world.size(), micro_batches);
        findings.check(wrong == 0, fmt::format("{}: {} wrong elements", text_of(zero), wrong));
      }
    }
  });
}

TEST_CASE("ranks begin sums over groups and replicas in one order, whatever has arrived where",
          "[training_hooks]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() != 4) {
      return;
    }
    Bench bench(five_layers(false), world, {.shard_ranks = 2, .bucket_bytes = 4096});
    CollectiveRecorder recorder;
    bench.record_into(recorder);
    const device::StreamClock clock({});
    bench.train(world.rank(), 2);
    int groups = 0;
    int replicas = 0;
    for (const schedule::TimelineSpan& span : recorder.take_spans(world.rank(), clock)) {
      if (span.name.starts_with("all_reduce replicas")) {
        ++replicas;
        continue;
      }
      ++groups;
      findings.check(replicas == std::max(0, groups - 2),
                     fmt::format("{} sums of replicas before bucket {}", replicas, groups));
    }
    findings.check(groups > 8 && replicas == groups,
                   fmt::format("{} buckets, {} of them over replicas", groups, replicas));
  });
}

TEST_CASE("weights of all shares are there when a unit needs them", "[training_hooks]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (const ZeroOptions& zero : options_for(world.size())) {
      const model::Architecture config = five_layers(true);
      Bench bench(config, world, zero);
      for (const int version : {1, 2}) {
        bench.renew_weights(version);
        for (const int unit : {0, 1, 2, 3, 4, 5, 6, 5, 4, 3, 3, 1, 0, 5, 6}) {
          const std::int64_t wrong = bench.wrong_weights(unit, version);
          findings.check(wrong == 0,
                         fmt::format("{}, unit {}: {} wrong", text_of(zero), unit, wrong));
        }
      }
    }
  });
}

TEST_CASE("of what is shared out a rank has its share and the vectors", "[training_hooks]") {
  on_ranks([](Communicator& world, Findings& findings) {
    const model::Architecture config = five_layers(true);
    const Bench whole(config, world, {});
    const Bench shared(config, world,
                       {.shard_ranks = world.size(),
                        .reduce_each_micro_batch = true,
                        .gather_each_unit = world.size() > 1});
    // A share is at most a row (of 72 elements) and its padding off for each of eight segments.
    const std::int64_t most = whole.elements(device::MemoryUse::gradients) / world.size() +
                              shared.vectors() + 8 * (72 + 16);
    findings.check(shared.elements(device::MemoryUse::gradients) <= most, "gradients");
    findings.check(world.size() == 1 || shared.elements(device::MemoryUse::weights) <= most,
                   "weights");
  });
}

TEST_CASE("hooks tell which communicator moves which memory", "[training_hooks]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() != 4) {
      return;
    }
    using Texts = std::multiset<std::string>;
    const auto check = [&](const ZeroOptions& zero, const Texts& expected) {
      const Texts found = Bench(five_layers(false), world, zero).moved();
      findings.check(found == expected,
                     fmt::format("{}: {}", text_of(zero), fmt::join(found, ", ")));
    };
    const Texts through_buffers{"communication by zero", "gradients by zero", "weights by zero"};
    check({}, {"gradients by dp*cp"});
    check({.shard_ranks = 4}, {"gradients by zero", "weights by zero"});
    check({.shard_ranks = 2}, {"gradients by replicas", "gradients by zero", "weights by zero"});
    check({.shard_ranks = 4, .reduce_each_micro_batch = true}, through_buffers);
    check({.shard_ranks = 4, .gather_each_unit = true}, through_buffers);
  });
}

}  // namespace
}  // namespace fourfold::parallel
