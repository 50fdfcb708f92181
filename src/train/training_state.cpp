// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/training_state.hpp>

#include <fmt/format.h>

#include <array>
#include <utility>

namespace fourfold::train {

namespace {

/// Who holds which part of a parameter.
std::vector<io::HeldBox> held_boxes(const model::ModelConfig& config,
                                    const model::ParameterSpec& spec, const comm::MeshShape& mesh) {
  std::vector<io::HeldBox> boxes;
  for (const parallel::TensorShard& shard : parallel::tensor_shards(config, spec, mesh.tp)) {
    const std::array axes{
        io::RankSet::Axis{mesh.dp * mesh.cp, mesh.tp},
        io::RankSet::Axis{static_cast<int>(shard.holders.count), 1},
    };
    boxes.push_back({shard.box, io::RankSet(static_cast<int>(shard.holders.begin), axes)});
  }
  return boxes;
}

}  // namespace

TrainingState::TrainingState(const model::ModelConfig& config, const model::Parameters& parameters,
                             const Optimizer& optimizer, const comm::MeshShape& mesh) {
  FOURFOLD_EXPECT(mesh.pp == 1);
  for (const model::Parameter& parameter : parameters) {
    const std::vector<io::HeldBox> boxes = held_boxes(config, parameter.spec, mesh);
    add(parameter, io::TensorState::master, parameter.master, boxes);
    for (const Moment& moment : optimizer.moments()) {
      const auto state = io::tensor_state_from_name(moment.name);
      FOURFOLD_ASSERT(state.has_value());
      const TensorView part = moment.flat.rows(parameter.flat.begin, parameter.flat.count)
                                  .reshape(parameter.box.extent);
      add(parameter, *state, part, boxes);
    }
  }
}

TrainingState::TrainingState(const model::Parameters& parameters, int ranks) {
  for (const model::Parameter& parameter : parameters) {
    add(parameter, io::TensorState::master, parameter.master,
        {{parameter.box, io::RankSet::all(ranks)}});
  }
}

void TrainingState::add(const model::Parameter& parameter, io::TensorState state, TensorView view,
                        std::vector<io::HeldBox> boxes) {
  const io::TensorId id{parameter.spec.name, state};
  layouts_.push_back({id, view.dtype(), parameter.spec.shape, std::move(boxes)});
  pieces_.push_back({id, parameter.box, view});
  wanted_.push_back({id, parameter.spec.shape, parameter.box, view});
}

io::CheckpointScalars to_scalars(const Progress& progress, std::string config_toml,
                                 std::string token_counts) {
  io::CheckpointScalars scalars;
  scalars.integers = {{"consumed_samples", progress.consumed_samples},
                      {"consumed_tokens", progress.consumed_tokens}};
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

}  // namespace fourfold::train
