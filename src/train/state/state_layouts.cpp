// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/shard_layout.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/state_layouts.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace fourfold::train {
namespace {

/// Which part of each parameter every rank of a mesh holds. With ZeRO a parameter that several
/// positions of the tp axis hold is that of the first: their shares may be cut elsewhere.
class Holders {
 public:
  Holders(const model::Architecture& config, const schedule::StageLayout& stages,
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
    const int plane = mesh_.data_plane_ranks();
    std::vector<io::HeldBox> boxes;
    for (const parallel::TensorShard& shard : parallel::tensor_shards(spec, mesh_.tp)) {
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
      const std::vector<std::vector<Box>>& shares = shares_.at({stages.front(), tp, spec.name});
      for (int place = 0; place < shard_ranks_; ++place) {
        for (const Box& box : shares[place]) {
          boxes.push_back({box, io::RankSet(first + place * mesh_.tp, axes)});
        }
      }
    }
    return boxes;
  }

 private:
  int rank_at(int pp, int tp) const {
    return static_cast<int>(comm::rank_of(mesh_, {.pp = pp, .dp = 0, .cp = 0, .tp = tp}));
  }
  std::vector<std::vector<Box>>& shares_of(int pp, int tp, const std::string& name) {
    return shares_.try_emplace({pp, tp, name}, shard_ranks_).first->second;
  }

  void add_shares(int pp, int tp, int tiles) {
    const auto table = model::parameter_table(config_, stages_.chunks_of(pp));
    const std::vector<Box> boxes = parallel::tensor_boxes(table, mesh_.tp, tp);
    const parallel::ShardLayout layout(table, boxes, model::flat_layout(table, boxes, tiles),
                                       shard_ranks_);
    for (std::size_t i = 0; i < table.size(); ++i) {
      if (boxes[i].empty()) {
        shares_of(pp, tp, table[i].name).front().push_back(boxes[i]);
      }
    }
    for (int place = 0; place < shard_ranks_; ++place) {
      for (const parallel::ShardPiece& piece : layout.pieces(place)) {
        shares_of(pp, tp, table[piece.parameter].name)[place].push_back(piece.box);
      }
    }
  }

  const model::Architecture& config_;
  const schedule::StageLayout& stages_;
  comm::MeshShape mesh_;
  int shard_ranks_;
  /// By pp, tp and name, and place in the group.
  std::map<std::tuple<int, int, std::string>, std::vector<std::vector<Box>>> shares_;
};

io::TensorLayout layout_of(const model::ParameterSpec& spec, const io::TensorState& state,
                           std::vector<io::HeldBox> boxes) {
  io::TensorLayout layout;
  layout.id = {spec.name, state};
  layout.shape = spec.shape;
  layout.boxes = std::move(boxes);
  return layout;
}

}  // namespace

std::vector<io::TensorId> saved_tensors(const ResolvedRun& run) {
  const bool keeps_errors = run.compression.keeps_errors(run.mesh.data_plane_ranks());
  std::vector<io::TensorId> tensors;
  for (const model::ParameterSpec& spec : model::parameter_table(run.config.model)) {
    tensors.push_back({spec.name, io::TensorState::master});
    for (const auto name : rule_of(run.rules, spec.group)->states()) {
      tensors.push_back({spec.name, io::TensorState(name)});
    }
    if (run.keeps_outer_momentum() && spec.is_trainable()) {
      tensors.push_back({spec.name, outer_momentum});
    }
    if (keeps_errors && !spec.is_vector()) {
      tensors.push_back({spec.name, error_feedback});
    }
  }
  return tensors;
}

std::vector<io::TensorLayout> state_layouts(const ResolvedRun& run,
                                            std::span<const io::TensorId> tensors) {
  std::map<std::string_view, std::vector<io::TensorState>> states;
  for (const io::TensorId& tensor : tensors) {
    states[tensor.name].push_back(tensor.state);
  }
  const model::Architecture& model = run.config.model;
  const Holders holders(model, run.layout, run.mesh, run.zero);
  std::vector<io::TensorLayout> layouts;
  std::vector<model::ParameterSpec> with_errors;
  for (const model::ParameterSpec& spec : model::parameter_table(model)) {
    const std::vector<io::HeldBox> boxes = holders.of(spec);
    for (const io::TensorState& state : states[spec.name]) {
      if (state == error_feedback) {
        with_errors.push_back(spec);
      } else {
        layouts.push_back(layout_of(spec, state, boxes));
      }
    }
  }
  if (!with_errors.empty()) {
    const Holders shared(model, run.layout, run.mesh,
                         {.shard_ranks = run.mesh.data_plane_ranks(), .tiles = run.zero.tiles});
    for (const model::ParameterSpec& spec : with_errors) {
      layouts.push_back(layout_of(spec, error_feedback, shared.of(spec, Holders::Stages::first)));
    }
  }
  return layouts;
}

std::vector<std::int64_t> saved_bytes(const ResolvedRun& run) {
  const auto layouts = state_layouts(run, saved_tensors(run));
  return io::plan_save(layouts, static_cast<int>(run.mesh.ranks())).bytes_of_rank;
}

}  // namespace fourfold::train
