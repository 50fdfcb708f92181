// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/training_state.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>
#include <utility>

namespace fourfold::train {

namespace {

constexpr const char* loss_scale_name = "loss_scale";
constexpr const char* good_steps_name = "loss_scale_good_steps";
constexpr const char* skipped_steps_name = "skipped_steps";

/// Who holds which part of a parameter.
std::vector<io::HeldBox> held_boxes(const model::ModelConfig& config,
                                    const parallel::StageLayout& stages,
                                    const model::ParameterSpec& spec, const comm::MeshShape& mesh) {
  const std::vector<int> holders = stages.holders(spec);
  FOURFOLD_EXPECT(holders.size() <= 2);  // one stride says where they are
  const auto rank_at = [&](int pp, std::int64_t tp) {
    return static_cast<int>(
        comm::rank_of(mesh, {.pp = pp, .dp = 0, .cp = 0, .tp = static_cast<int>(tp)}));
  };
  std::vector<io::HeldBox> boxes;
  for (const parallel::TensorShard& shard : parallel::tensor_shards(config, spec, mesh.tp)) {
    const std::array axes{
        io::RankSet::Axis{static_cast<int>(holders.size()),
                          rank_at(holders.back(), 0) - rank_at(holders.front(), 0)},
        io::RankSet::Axis{mesh.dp * mesh.cp, mesh.tp},
        io::RankSet::Axis{static_cast<int>(shard.holders.count), 1},
    };
    boxes.push_back({shard.box, io::RankSet(rank_at(holders.front(), shard.holders.begin), axes)});
  }
  return boxes;
}

io::TensorState state_named(std::string_view name) {
  const auto state = io::tensor_state_from_name(name);
  FOURFOLD_ASSERT(state.has_value());
  return *state;
}

}  // namespace

TrainingState::TrainingState(const model::ModelConfig& config, const parallel::StageLayout& stages,
                             const model::Parameters& parameters, const Optimizer& optimizer,
                             const comm::MeshShape& mesh) {
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    const std::vector<io::HeldBox> boxes = held_boxes(config, stages, spec, mesh);
    const model::Parameter* const mine = parameters.find(spec.name);
    add(spec, io::TensorState::master, boxes);
    if (mine != nullptr) {
      hold(*mine, io::TensorState::master, mine->master);
    }
    for (const Moment& moment : optimizer.moments()) {
      add(spec, state_named(moment.name), boxes);
      if (mine != nullptr) {
        hold(*mine, state_named(moment.name),
             moment.flat.rows(mine->flat.begin, mine->flat.count).reshape(mine->box.extent));
      }
    }
  }
}

TrainingState::TrainingState(const model::Parameters& parameters, int ranks) {
  for (const model::Parameter& parameter : parameters) {
    add(parameter.spec, io::TensorState::master, {{parameter.box, io::RankSet::all(ranks)}});
    hold(parameter, io::TensorState::master, parameter.master);
  }
}

void TrainingState::add(const model::ParameterSpec& spec, io::TensorState state,
                        std::vector<io::HeldBox> boxes) {
  layouts_.push_back({{spec.name, state}, DType::f32, spec.shape, std::move(boxes)});
}

void TrainingState::hold(const model::Parameter& parameter, io::TensorState state,
                         TensorView view) {
  FOURFOLD_EXPECT(view.dtype() == DType::f32);
  const io::TensorId id{parameter.spec.name, state};
  pieces_.push_back({id, parameter.box, view});
  wanted_.push_back({id, parameter.spec.shape, parameter.box, view});
}

io::CheckpointScalars to_scalars(const Progress& progress, const LossScale& loss_scale,
                                 std::string config_toml, std::string token_counts) {
  io::CheckpointScalars scalars;
  scalars.integers = {{"consumed_samples", progress.consumed_samples},
                      {"consumed_tokens", progress.consumed_tokens}};
  const LossScaleState& state = loss_scale.state();
  if (loss_scale.in_use()) {
    scalars.integers.emplace(loss_scale_name, state.scale);
    scalars.integers.emplace(good_steps_name, state.good_steps);
  }
  if (loss_scale.in_use() || state.skipped_steps > 0) {
    scalars.integers.emplace(skipped_steps_name, state.skipped_steps);
  }
  scalars.texts = {{config_text_name, std::move(config_toml)},
                   {token_counts_name, std::move(token_counts)}};
  return scalars;
}

Progress progress_of(const io::Checkpoint& checkpoint) {
  const Progress progress{.step = checkpoint.step(),
                          .consumed_samples = checkpoint.scalars().integer("consumed_samples"),
                          .consumed_tokens = checkpoint.scalars().integer("consumed_tokens")};
  if (progress.consumed_samples < 0 || progress.consumed_tokens < 0) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{} has a negative position in the data (it is damaged) resume "
                                "from another step",
                                checkpoint.path().string()));
  }
  return progress;
}

LossScaleState loss_scale_of(const io::Checkpoint& checkpoint, const LossScaleState& fresh) {
  const auto& integers = checkpoint.scalars().integers;
  const auto saved = [&](const char* name, std::int64_t otherwise) {
    const auto found = integers.find(name);
    return found == integers.end() ? otherwise : found->second;
  };
  const LossScaleState state{.scale = saved(loss_scale_name, fresh.scale),
                             .good_steps = saved(good_steps_name, fresh.good_steps),
                             .skipped_steps = saved(skipped_steps_name, fresh.skipped_steps)};
  const bool is_power =
      state.scale > 0 && std::has_single_bit(static_cast<std::uint64_t>(state.scale));
  if (!is_power || state.scale > runfile::largest_loss_scale || state.good_steps < 0 ||
      state.skipped_steps < 0 || state.skipped_steps > checkpoint.step()) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{} has an impossible loss scale (scale {}, {} steps without and "
                                "{} with an overflow at step {}: it is damaged) resume from "
                                "another step",
                                checkpoint.path().string(), state.scale, state.good_steps,
                                state.skipped_steps, checkpoint.step()));
  }
  return state;
}

}  // namespace fourfold::train
