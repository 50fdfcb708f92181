// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What compressed reductions apply and keep, held against the true sums of gradients that every
// rank can make for all others.
#include "shared_arena.hpp"
#include "small_architecture.hpp"
#include "trace/counting_communicator.hpp"
#include "whole_model.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/parallel/compression.hpp>
#include <fourfold/parallel/error_feedback.hpp>
#include <fourfold/parallel/gradient_compression.hpp>
#include <fourfold/parallel/training_hooks.hpp>
#include <fourfold/parallel/zero.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using harness::Findings;
using harness::on_ranks;
using model_test::small_model;
using model_test::whole_boxes;

model::Architecture compressed_model() {
  return small_model({.heads = 3,
                      .ffn = 41,
                      .vocab = 67,
                      .context = 4});  // the position embedding gains nothing by low rank 2
}

/// The model of scripts/quickstart.
model::Architecture quickstart_model() {
  return small_model(
      {.layers = 4, .hidden = 128, .heads = 4, .ffn = 512, .vocab = 257, .context = 128});
}

/// What a rank's backward pass gives for a flat element in a step.
using Gradient = std::function<float(int rank, int step, std::int64_t element)>;

float random_gradient(int rank, int step, std::int64_t element) {
  const auto place =
      static_cast<std::uint64_t>((step * 64 + rank) * std::int64_t{1'000'000} + element);
  return 0.01F * uniform_float(static_cast<std::uint32_t>(mix64(place))) - 0.004F;
}

enum class Kind : std::uint8_t { gap, matrix, vector };

/// One rank's parameters and hooks, without a model between them.
class Bench {
 public:
  Bench(Communicator& world, const ZeroOptions& zero, const CompressionOptions& compression)
      : config_(compressed_model()),
        stages_(schedule::whole_model(config_)),
        world_(world),
        mesh_({.dp = world.size()}, world),
        parameters_(model::parameter_table(config_), whole_boxes(config_), DType::f32, arena_,
                    parameter_memory(zero, config_)),
        layout_(make_layout(parameters_, zero.shard_ranks)),
        share_(make_share(parameters_, layout_, world.rank(), zero, arena_, arena_)),
        hooks_({config_, stages_, parameters_, share_, layout_}, mesh_, {}, {}, zero, compression,
               arena_) {}

  void train(int step, const Gradient& gradient, double loss_scale = 1) {
    hooks_.begin_step({}, loss_scale);
    const auto factor = static_cast<float>(loss_scale);
    for (int unit = static_cast<int>(config_.layers) + 1; unit >= 0; --unit) {
      hooks_.gradients_needed(unit, {});
      for (const model::Parameter& parameter : parameters_) {
        for (std::int64_t i = 0; parameter.spec.unit == unit && i < parameter.flat.count; ++i) {
          parameter.gradient.as<float>()[i] +=
              factor * gradient(world_.rank(), step, parameter.flat.begin + i);
        }
      }
      hooks_.gradients_ready(unit, model::Gradients::complete, {});
    }
    hooks_.finish_gradients({});
    for (std::size_t i = parameters_.layout().segments.size(); i-- > 0;) {
      hooks_.wait_gradients(i, {});
    }
  }

  /// The sums that this step applies, by flat element; -infinity where the share of this rank has
  /// nothing.
  std::vector<float> applied_here() const {
    std::vector<float> sums(static_cast<std::size_t>(elements()),
                            -std::numeric_limits<float>::infinity());
    for (const ParameterShard::Run& run : share_.runs()) {
      std::copy_n(run.gradient.as<float>(), run.flat.count, sums.begin() + run.flat.begin);
    }
    return sums;
  }
  /// Those of all ranks together; whether ranks that have the same element have the same bits.
  std::vector<float> applied(bool& same_bits) {
    std::vector<float> highest = applied_here();
    std::vector<float> lowest = highest;
    std::ranges::replace(lowest, -std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::infinity());
    const Shape shape{elements()};
    world_.host().all_reduce({highest.data(), shape}, comm::ReduceOp::max, {}).wait({});
    world_.host().all_reduce({lowest.data(), shape}, comm::ReduceOp::min, {}).wait({});
    same_bits = highest == lowest;
    return highest;
  }

  /// Folds the errors. @return those of all ranks by flat element
  std::vector<float> errors() {
    hooks_.fold_errors({});
    std::vector<float> all(static_cast<std::size_t>(elements()));
    const auto pieces = hooks_.error_pieces();
    for (const ErrorFeedback::Piece& piece : *pieces) {
      const Range flat = piece.parameter->flat;
      const std::int64_t row = flat.count / piece.parameter->box.extent[0];
      std::copy_n(piece.error.as<float>(), piece.error.elements(),
                  all.begin() + flat.begin + piece.box.offset[0] * row);
    }
    world_.host().all_reduce({all.data(), Shape{elements()}}, comm::ReduceOp::sum, {}).wait({});
    return all;
  }

  std::int64_t elements() const { return parameters_.layout().elements; }
  /// Of each flat element: part of a matrix, of a vector, or of nothing.
  std::vector<Kind> kinds() const {
    std::vector<Kind> kinds(static_cast<std::size_t>(elements()), Kind::gap);
    for (const model::Parameter& parameter : parameters_) {
      std::fill_n(kinds.begin() + parameter.flat.begin, parameter.flat.count,
                  parameter.spec.is_vector() ? Kind::vector : Kind::matrix);
    }
    return kinds;
  }
  /// In a row of the matrix that has the element.
  std::int64_t row_elements(std::int64_t element) const {
    const auto found = std::ranges::find_if(parameters_.all(), [&](const model::Parameter& each) {
      return each.flat.begin <= element && element < each.flat.end();
    });
    return found->flat.count / found->box.extent[0];
  }
  /// Padding between them included.
  std::int64_t matrix_elements() const { return parameters_.layout().segments.back().flat.begin; }
  TrainingHooks& hooks() { return hooks_; }
  const device::Arena& arena() const { return arena_; }

 private:
  model::Architecture config_;
  schedule::StageLayout stages_;
  Communicator& world_;
  comm::Mesh mesh_;
  fourfold::harness::SharedArena arena_;
  model::Parameters parameters_;
  ShardLayout layout_;
  ParameterShard share_;
  TrainingHooks hooks_;
};

struct Case {
  ZeroOptions zero;
  CompressionOptions compression;
  std::string str() const {
    return fmt::format("shared by {}, buckets of {}, {} tiles, kind {}", zero.shard_ranks,
                       zero.bucket_bytes, zero.tiles, static_cast<int>(compression.kind));
  }
};

/// None on one rank, which sends nothing.
std::vector<Case> cases_for(int ranks) {
  std::vector<Case> cases;
  if (ranks == 1) {
    return cases;
  }
  for (const CompressionOptions& compression :
       {CompressionOptions{.kind = Compression::bf16},
        CompressionOptions{.kind = Compression::int8},
        CompressionOptions{.kind = Compression::low_rank, .rank = 2, .seed = 5}}) {
    for (const std::int64_t bucket_bytes : {2052, 1 << 24}) {
      for (int shard_ranks = 1; shard_ranks <= ranks; ++shard_ranks) {
        if (ranks % shard_ranks != 0) {
          continue;
        }
        cases.push_back({{.shard_ranks = shard_ranks, .bucket_bytes = bucket_bytes}, compression});
        if (shard_ranks > 1) {
          cases.push_back({{.shard_ranks = shard_ranks,
                            .gather_each_unit = true,
                            .tiles = 3,
                            .bucket_bytes = bucket_bytes},
                           compression});
        }
      }
    }
  }
  return cases;
}

/// Sums over steps and ranks, by flat element.
class Ledger {
 public:
  explicit Ledger(std::int64_t elements)
      : came_(static_cast<std::size_t>(elements)), left_(came_) {}

  void add(int ranks, int step, const Gradient& gradient, const std::vector<float>& applied) {
    for (std::size_t i = 0; i < came_.size(); ++i) {
      for (int rank = 0; rank < ranks; ++rank) {
        came_[i] += static_cast<double>(gradient(rank, step, static_cast<std::int64_t>(i)));
      }
      left_[i] -= static_cast<double>(applied[i]);
    }
  }
  /// Of an element: what came, less what was applied and what is kept.
  double missing(std::size_t element, const std::vector<float>& errors) const {
    return came_[element] + left_[element] - static_cast<double>(errors[element]);
  }

 private:
  std::vector<double> came_;
  std::vector<double> left_;
};

}  // namespace

TEST_CASE("kinds of compression are spelled as run files have them", "[gradient_compression]") {
  for (const std::string text : {"none", "bf16", "int8", "lowrank:1", "lowrank:1024"}) {
    const auto compression = parallel::gradient_compression_named(text);
    REQUIRE(compression);
    CHECK(name(*compression) == text);
  }
  for (const char* const text : {"", "bf8", "lowrank", "lowrank:", "lowrank:0", "lowrank:1025",
                                 "lowrank:-1", "lowrank:4x", "lowrank: 4"}) {
    CHECK_FALSE(parallel::gradient_compression_named(text));
  }
}

TEST_CASE("what ranks apply and what they keep are all gradients, and copies agree",
          "[gradient_compression]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (const Case& each : cases_for(world.size())) {
      Bench bench(world, each.zero, each.compression);
      Ledger ledger(bench.elements());
      for (int step = 0; step < 12; ++step) {
        bool same_bits = false;
        bench.train(step, random_gradient);
        ledger.add(world.size(), step, random_gradient, bench.applied(same_bits));
        findings.check(same_bits, fmt::format("{}: copies differ at step {}", each.str(), step));
        bench.hooks().finish_step(true);
        if (step == 7) {
          bench.errors();  // a save in between changes nothing about the sum
        }
      }
      const std::vector<float> errors = bench.errors();
      const std::vector<Kind> kinds = bench.kinds();
      double worst = 0;
      float largest_error = 0;
      float outside_matrices = 0;
      for (std::size_t i = 0; i < errors.size(); ++i) {
        worst =
            kinds[i] == Kind::gap ? worst : std::max(worst, std::fabs(ledger.missing(i, errors)));
        float& largest = kinds[i] == Kind::matrix ? largest_error : outside_matrices;
        largest = std::max(largest, std::fabs(errors[i]));
      }
      findings.check(worst <= 1e-5, fmt::format("{}: {} is missing", each.str(), worst));
      findings.check(outside_matrices == 0, each.str() + ": vectors have errors");
      findings.check(largest_error > 1e-6, each.str() + ": nothing was left out");
    }
  });
}

TEST_CASE("a step without effect leaves errors and factors as they were",
          "[gradient_compression]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (Case each : cases_for(world.size())) {
      each.compression.steps_may_skip = true;
      const auto overflow = [](int rank, int step, std::int64_t element) {
        return rank == 0 && element % 97 == 3 ? std::numeric_limits<float>::infinity()
                                              : random_gradient(rank, step, element);
      };
      Bench skips(world, each.zero, each.compression);
      Bench smooth(world, each.zero, each.compression);
      bool ignored = false;
      for (const int step : {0, 1, 2, 3}) {
        if (step == 2) {
          skips.train(77, overflow);
          bool finite = true;
          for (const float sum : skips.applied(ignored)) {
            finite = finite && std::isfinite(sum);
          }
          findings.check(!finite, each.str() + ": the overflow is lost");
          skips.hooks().finish_step(false);
        }
        skips.train(step, random_gradient);
        skips.hooks().finish_step(true);
        smooth.train(step, random_gradient);
        smooth.hooks().finish_step(true);
      }
      findings.check(skips.applied_here() == smooth.applied_here(), each.str() + ": sums");
      findings.check(skips.errors() == smooth.errors(), each.str() + ": errors");
    }
  });
}

TEST_CASE("a loss scale changes no bit of what is kept", "[gradient_compression]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (const Case& each : cases_for(world.size())) {
      Bench scaled(world, each.zero, each.compression);
      Bench plain(world, each.zero, each.compression);
      for (const int step : {0, 1, 2}) {
        scaled.train(step, random_gradient, step == 1 ? 1024 : 65536);
        scaled.hooks().finish_step(true);
        plain.train(step, random_gradient);
        plain.hooks().finish_step(true);
      }
      std::vector<float> unscaled = scaled.applied_here();
      std::ranges::for_each(unscaled, [](float& sum) { sum /= 65536; });
      findings.check(unscaled == plain.applied_here(), each.str() + ": sums");
      findings.check(scaled.errors() == plain.errors(), each.str() + ": errors");
    }
  });
}

TEST_CASE("gradients of low rank lose nothing", "[gradient_compression]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() == 1) {
      return;
    }
    // In matrices of 24 columns every other row is the same: rank 2.
    const Gradient thin = [](int rank, int step, std::int64_t element) {
      return random_gradient(rank, step, element % 48);
    };
    Bench bench(world, {}, {.kind = Compression::low_rank, .rank = 2, .seed = 5});
    bench.train(0, thin);
    bool same_bits = false;
    const std::vector<float> applied = bench.applied(same_bits);
    double worst = 0;
    const std::vector<Kind> kinds = bench.kinds();
    for (std::int64_t i = 0; i < bench.elements(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (kinds[at] != Kind::matrix || bench.row_elements(i) != 24) {
        continue;  // down_proj has other rows
      }
      double sum = 0;
      for (int rank = 0; rank < world.size(); ++rank) {
        sum += static_cast<double>(thin(rank, 0, i));
      }
      worst = std::max(worst, std::fabs(static_cast<double>(applied[at]) - sum));
    }
    findings.check(worst <= 1e-6, fmt::format("off by {}", worst));
  });
}

TEST_CASE("int8 sends at most 0.27 of the bytes of f32, and each reduction what it says",
          "[gradient_compression]") {
  on_ranks([](Communicator& world, Findings& findings) {
    if (world.size() == 1) {
      return;
    }
    const model::Architecture config = quickstart_model();
    fourfold::harness::SharedArena arena;
    const auto alone = world.split(world.rank(), 0, "alone");
    for (const int shard_ranks : {1, world.size()}) {
      const ZeroOptions zero{.shard_ranks = shard_ranks};
      const model::Parameters shared(model::parameter_table(config), whole_boxes(config),
                                     DType::f32, arena, parameter_memory(zero, config));
      const ShardLayout layout = make_layout(shared, shard_ranks);
      const ParameterShard share = make_share(shared, layout, world.rank(), zero, arena, arena);
      const auto sent_by = [&](Compression kind) {
        test::CountingCommunicator counting(world);
        ErrorFeedback errors(shared, make_layout(shared, world.size()), false, arena);
        const ReductionPlan plan{.group = &counting,
                                 .replicas = alone.get(),
                                 .plane = &counting,
                                 .parameters = &shared,
                                 .share = &share,
                                 .layout = &layout,
                                 .finishing_units = {5, 4, 3, 2, 1, 0},
                                 .bucket_bytes = 25'000'000};
        const auto reduction =
            kind == Compression::none
                ? reduce_each_step(plan)
                : reduce_compressed(
                      plan, {.kind = kind, .rank = 4},
                      [](const model::Parameter& /*matrix*/) { return Copies::none; }, errors,
                      arena);
        reduction->begin_step({});
        for (const int unit : plan.finishing_units) {
          reduction->ready(unit, model::Gradients::complete, {});
        }
        reduction->finish({});
        for (std::size_t i = 0; i < shared.layout().segments.size(); ++i) {
          reduction->wait(i, {});
        }
        findings.check(counting.sent_bytes() == reduction->sent_bytes(),
                       fmt::format("kind {}: {} bytes, not {}", static_cast<int>(kind),
                                   counting.sent_bytes(), reduction->sent_bytes()));
        return static_cast<double>(counting.sent_bytes());
      };
      const double f32 = sent_by(Compression::none);
      const double bf16 = sent_by(Compression::bf16);
      const double int8 = sent_by(Compression::int8);
      const double low_rank = sent_by(Compression::low_rank);
      findings.check(int8 <= 0.27 * f32, fmt::format("int8 sends {} of f32", int8 / f32));
      findings.check(int8 >= 0.25 * f32, fmt::format("int8 sends {} of f32", int8 / f32));
      findings.check(bf16 <= 0.51 * f32, fmt::format("bf16 sends {} of f32", bf16 / f32));
      findings.check(low_rank < int8, fmt::format("low rank sends {} of f32", low_rank / f32));
    }
  });
}

TEST_CASE("errors are one f32 number per element of a matrix, two where steps may be skipped",
          "[gradient_compression]") {
  on_ranks([](Communicator& world, Findings& findings) {
    const Bench plain(world, {}, {});
    const Bench once(world, {}, {.kind = Compression::int8});
    const Bench twice(world, {}, {.kind = Compression::int8, .steps_may_skip = true});
    const auto extra = [&](const Bench& bench) {
      return static_cast<std::int64_t>(bench.arena().bytes(device::MemoryUse::gradients) -
                                       plain.arena().bytes(device::MemoryUse::gradients));
    };
    const std::int64_t matrices = world.size() == 1 ? 0 : 4 * plain.matrix_elements();
    findings.check(extra(once) == matrices, "once");
    findings.check(extra(twice) == 2 * matrices, "twice");
  });
}

}  // namespace fourfold::parallel
