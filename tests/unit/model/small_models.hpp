// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tiny models and batches for the tests of stages.
#pragma once

#include "shared_arena.hpp"
#include "small_architecture.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/harness/shared_vector.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/stage.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace fourfold::model_test {

/// What most tests of stages do it with.
namespace usual {
inline const device::StreamRef stream;
inline constexpr float scale = 0.03F;
inline constexpr std::int64_t sequences = 2;
inline constexpr std::int64_t tokens = 7;
}  // namespace usual

inline model::Architecture small(model::Family family, double dropout = 0, bool tied = true) {
  return small_model({.family = family,
                      .kv_heads = family == model::Family::llama ? 2 : 6,
                      .dropout = dropout,
                      .tied = tied});
}

/// A micro-batch of random tokens that owns its numbers.
class OwnedBatch {
 public:
  OwnedBatch(const model::Architecture& config, std::int64_t sequences, std::int64_t tokens,
             std::uint64_t seed, std::int64_t step = 3)
      : sequences_(sequences), tokens_(tokens), step_(step) {
    const PhiloxKey key = philox_key(seed, RandomUse::test);
    for (std::int64_t row = 0; row < sequences * tokens; ++row) {
      const PhiloxBlock drawn = philox(key, static_cast<std::uint64_t>(row));
      const auto vocab = static_cast<std::uint32_t>(config.vocab);
      token_.push_back(static_cast<std::int32_t>(drawn.word[0] % vocab));
      target_.push_back(drawn.word[1] % 5 == 0 ? kernels::ignored_target
                                               : static_cast<std::int32_t>(drawn.word[2] % vocab));
      position_.push_back(static_cast<std::int32_t>(row % tokens));
      sample_.push_back(static_cast<std::int64_t>(seed) * 100 + row / tokens);
    }
  }

  model::Batch view() const {
    const Shape rows{sequences_ * tokens_};
    model::Batch batch;
    batch.sequences = sequences_;
    batch.tokens = tokens_;
    batch.token_N = {token_.data(), rows};
    batch.target_N = {target_.data(), rows};
    batch.position_N = {position_.data(), rows};
    batch.sample_N = {sample_.data(), rows};
    batch.step = step_;
    return batch;
  }

 private:
  std::int64_t sequences_;
  std::int64_t tokens_;
  std::int64_t step_;
  harness::SharedVector<std::int32_t> token_;
  harness::SharedVector<std::int32_t> target_;
  harness::SharedVector<std::int32_t> position_;
  harness::SharedVector<std::int64_t> sample_;
};

namespace usual {
/// Full, shorter in tokens, shorter in sequences.
inline std::vector<OwnedBatch> ragged_batches(const model::Architecture& config) {
  std::vector<OwnedBatch> batches;
  batches.emplace_back(config, sequences, tokens, 1);
  batches.emplace_back(config, sequences, tokens - 3, 2);
  batches.emplace_back(config, 1, tokens, 3);
  return batches;
}
}  // namespace usual

/// Parameters and a stage of some units, with weights ten times those a run starts from, so that
/// nothing is lost in rounding.
struct Model {
  Model(const model::Architecture& config, model::UnitRange units,
        const model::StageOptions& options, model::ParallelHooks& hooks, DType compute = DType::f32)
      : parameters(model::parameter_table(config, units), compute, arena) {
    start();
    stage = std::make_unique<model::Stage>(config, units, parameters, hooks, arena, options, &host);
    arena.seal();
    host.seal();
  }

  void start() {
    model::initialise(parameters, 11, {});
    auto* masters = parameters.masters().as<float>();
    for (const model::Parameter& parameter : parameters) {
      for (std::int64_t i = 0; i < parameter.flat.count; ++i) {
        float& value = masters[parameter.flat.begin + i];
        if (parameter.spec.init == model::Init::zeros) {
          value = 0.01F * static_cast<float>(i % 7);
        } else if (parameter.spec.init == model::Init::normal) {
          value *= 10;
        }
      }
    }
    parameters.update_weights_from_masters({});
  }

  std::vector<float> gradients() const {
    const auto* first = parameters.gradients().as<float>();
    return {first, first + parameters.gradients().elements()};
  }
  std::vector<float> losses(int slot = 0) const {
    const TensorView loss = stage->loss(slot);
    return {loss.as<float>(), loss.as<float>() + loss.elements()};
  }

  fourfold::harness::SharedArena arena;
  fourfold::harness::SharedArena host;
  model::Parameters parameters;
  std::unique_ptr<model::Stage> stage;
};

inline model::StageOptions options_for(std::int64_t sequences, std::int64_t tokens, int slots = 1) {
  model::StageOptions options;
  options.sequences = sequences;
  options.tokens = tokens;
  options.slots = slots;
  options.seed = 5;
  return options;
}

}  // namespace fourfold::model_test
