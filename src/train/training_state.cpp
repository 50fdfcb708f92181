// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/training_state.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace fourfold::train {

namespace {

constexpr const char* loss_scale_name = "loss_scale";
constexpr const char* good_steps_name = "loss_scale_good_steps";
constexpr const char* skipped_steps_name = "skipped_steps";

/// Which part of each parameter every rank of a mesh holds. With ZeRO a parameter that several
/// positions of the tp axis hold is that of the first: their shares may be cut elsewhere.
class Holders {
 public:
  Holders(const model::ModelConfig& config, const parallel::StageLayout& stages,
          const comm::MeshShape& mesh, const parallel::ZeroOptions& zero)
      : config_(config), stages_(stages), mesh_(mesh), shard_ranks_(zero.shard_ranks) {
    for (int pp = 0; shard_ranks_ > 1 && pp < mesh.pp; ++pp) {
      for (int tp = 0; tp < mesh.tp; ++tp) {
        add_shares(pp, tp, zero.tiles);
      }
    }
  }

  /// @param stages  of a tied embedding: both that hold it, or the first
  enum class Stages : std::uint8_t { all, first };
  std::vector<io::HeldBox> of(const model::ParameterSpec& spec, Stages which = Stages::all) const {
    std::vector<int> stages = stages_.holders(spec);
    FOURFOLD_EXPECT(stages.size() <= 2);  // one stride says where they are
    stages.resize(which == Stages::first ? 1 : stages.size());
    const io::RankSet::Axis by_stage{static_cast<int>(stages.size()),
                                     rank_at(stages.back(), 0) - rank_at(stages.front(), 0)};
    const int plane = mesh_.dp * mesh_.cp;
    std::vector<io::HeldBox> boxes;
    for (const parallel::TensorShard& shard : parallel::tensor_shards(config_, spec, mesh_.tp)) {
      const auto tp = static_cast<int>(shard.holders.begin);
      const int first = rank_at(stages.front(), tp);
      if (shard_ranks_ == 1) {
        const std::array axes{by_stage, io::RankSet::Axis{plane, mesh_.tp},
                              io::RankSet::Axis{static_cast<int>(shard.holders.count), 1}};
        boxes.push_back({shard.box, io::RankSet(first, axes)});
        continue;
      }
      const std::array axes{by_stage,
                            io::RankSet::Axis{plane / shard_ranks_, shard_ranks_ * mesh_.tp}};
      for (const auto& [box, place] : shares_.at({stages.front(), tp, spec.name})) {
        boxes.push_back({box, io::RankSet(first + place * mesh_.tp, axes)});
      }
    }
    return boxes;
  }

 private:
  struct Share {
    Box box;
    int place;  ///< in the group
  };
  int rank_at(int pp, int tp) const {
    return static_cast<int>(comm::rank_of(mesh_, {.pp = pp, .dp = 0, .cp = 0, .tp = tp}));
  }
  void add_shares(int pp, int tp, int tiles) {
    const auto table = model::parameter_table(config_, stages_.chunks_of(pp));
    const std::vector<Box> boxes = parallel::tensor_boxes(config_, table, mesh_.tp, tp);
    const parallel::ShardLayout layout(table, boxes, model::flat_layout(table, boxes, tiles),
                                       shard_ranks_);
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (boxes[i].empty()) {
        shares_[{pp, tp, table[i].name}].push_back({boxes[i], 0});
      }
    }
    for (int place = 0; place < shard_ranks_; ++place) {
      for (const parallel::ShardPiece& piece : layout.pieces(place)) {
        shares_[{pp, tp, table[piece.parameter].name}].push_back({piece.box, place});
      }
    }
  }

  const model::ModelConfig& config_;
  const parallel::StageLayout& stages_;
  comm::MeshShape mesh_;
  int shard_ranks_;
  std::map<std::tuple<int, int, std::string>, std::vector<Share>> shares_;  ///< by pp, tp, name
};

io::TensorState state_named(std::string_view name) {
  const auto state = io::tensor_state_from_name(name);
  FOURFOLD_ASSERT(state.has_value());
  return *state;
}

}  // namespace

TrainingState::TrainingState(const model::ModelConfig& config, const parallel::StageLayout& stages,
                             const parallel::ParameterShare& share, const Optimizer& optimizer,
                             const comm::Mesh& mesh, const parallel::ZeroOptions& zero,
                             const OptionalState& more) {
  const Holders holders(config, stages, mesh.shape(), zero);
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    const std::vector<io::HeldBox> boxes = holders.of(spec);
    add(spec, io::TensorState::master, boxes);
    for (const std::span<const Moment> moments : {optimizer.moments(), more.outer}) {
      for (const Moment& moment : moments) {
        add(spec, state_named(moment.name), boxes);
      }
    }
  }
  const int tp = mesh.coordinate().tp;
  for (const parallel::ParameterShare::Piece& piece : share.pieces()) {
    const model::ParameterSpec& spec = piece.parameter->spec;
    const bool first =
        parallel::tensor_shard(config, spec, mesh.shape().tp, tp).holders.begin == tp;
    const Saves saves = zero.shard_ranks == 1 || first ? Saves::yes : Saves::no;
    hold(spec, piece.box, io::TensorState::master, piece.master, saves);
    const auto hold_moments = [&](std::span<const Moment> moments, bool or_zeros) {
      for (const Moment& moment : moments) {
        hold(spec, piece.box, state_named(moment.name),
             moment.flat.rows(piece.state.begin, piece.state.count).reshape(piece.box.extent),
             saves, or_zeros);
      }
    };
    hold_moments(optimizer.moments(), false);
    hold_moments(more.outer, true);
  }
  if (more.errors) {
    add_errors(config, stages, *more.errors, mesh, zero.tiles);
  }
}

/// They are shared out among the whole data plane, with ZeRO and without.
void TrainingState::add_errors(const model::ModelConfig& config,
                               const parallel::StageLayout& stages, const ErrorPieces& errors,
                               const comm::Mesh& mesh, int tiles) {
  const Holders holders(config, stages, mesh.shape(),
                        {.shard_ranks = mesh.data_plane().size(), .tiles = tiles});
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    if (spec.decays) {
      add(spec, io::TensorState::error_feedback, holders.of(spec, Holders::Stages::first));
    }
  }
  const int tp = mesh.coordinate().tp;
  for (const parallel::ErrorFeedback::Piece& piece : errors) {
    const model::ParameterSpec& spec = piece.parameter->spec;
    const bool first =
        parallel::tensor_shard(config, spec, mesh.shape().tp, tp).holders.begin == tp;
    hold(spec, piece.box, io::TensorState::error_feedback, piece.error,
         first ? Saves::yes : Saves::no, true);
  }
}

TrainingState::TrainingState(const model::Parameters& parameters, int ranks) {
  for (const model::Parameter& parameter : parameters) {
    add(parameter.spec, io::TensorState::master, {{parameter.box, io::RankSet::all(ranks)}});
    hold(parameter.spec, parameter.box, io::TensorState::master, parameter.master, Saves::yes);
  }
}

void TrainingState::add(const model::ParameterSpec& spec, io::TensorState state,
                        std::vector<io::HeldBox> boxes) {
  layouts_.push_back({{spec.name, state}, DType::f32, spec.shape, std::move(boxes)});
}

void TrainingState::hold(const model::ParameterSpec& spec, const Box& box, io::TensorState state,
                         TensorView view, Saves saves, bool or_zeros) {
  FOURFOLD_EXPECT(view.dtype() == DType::f32);
  const io::TensorId id{spec.name, state};
  if (saves == Saves::yes) {
    pieces_.push_back({id, box, view});
  }
  wanted_.push_back({id, spec.shape, box, view, or_zeros});
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
