// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matrix_update.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/buffer.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::train {

using device::MemoryUse;
using parallel::ParameterShard;

namespace {

const std::vector<model::Segment>& segments_of(const parallel::WholeMatrices& matrices) {
  return matrices.parameters().layout().segments;
}

/// Whether a parameter is updated as a whole matrix.
bool is_whole(const UpdateRules& rules, const model::ParameterSpec& spec) {
  const bool whole = matrix_rule_of(rules, spec.group) != nullptr;
  if (whole && spec.is_vector()) {
    throw UserError(ExitCode::config,
                    format_message("{} is no matrix (the optimizer's rule for its group updates "
                                   "whole matrices); choose another rule, or freeze it "
                                   "(model.frozen)",
                                   spec.name));
  }
  return whole;
}

}  // namespace

MatrixUpdate::MatrixUpdate(const UpdateRules& rules, const Optimizer& states,
                           const ParameterShard& share,
                           const parallel::WholeMatrices::State& matrices, StateTier& tier)
    : rules_(rules),
      matrices_(matrices, [&](const model::ParameterSpec& spec) { return is_whole(rules, spec); }),
      tier_(&tier),
      pieces_(matrices.parameters.all().size()) {
  const model::Parameter* const first = matrices.parameters.all().data();
  for (const ParameterShard::Piece& piece : share.pieces()) {
    const std::size_t matrix = piece.parameter - first;
    if (rule_of(matrix) == nullptr) {
      continue;
    }
    Piece& added = pieces_[matrix].emplace_back(&piece, std::vector{piece.master, piece.gradient});
    for (const Moment& state : states.states_of(piece)) {
      added.values.push_back(state.flat);
    }
  }
  for (std::vector<Piece>& pieces : pieces_) {
    std::ranges::sort(pieces, {}, [](const Piece& each) { return each.piece->box.offset[0]; });
  }
  take_memory(matrices.arena);
}

void MatrixUpdate::take_memory(device::Arena& arena) {
  std::int64_t copied = 0;
  std::int64_t scratch = 0;
  std::size_t arrays = 0;
  for (std::size_t matrix = 0; matrix < pieces_.size(); ++matrix) {
    if (const MatrixRule* const rule = rule_of(matrix)) {
      const Shape part = matrices_.mine(matrix);
      const Shape& whole = matrices_.parameters().all()[matrix].spec.shape;
      copied = is_staged(matrix) ? std::max(copied, part.elements()) : copied;
      scratch = std::max(scratch, rule->scratch_elements(whole, part));
      arrays = std::max(arrays, 2 + rule->states().size());
    }
  }
  for (std::size_t i = 0; copied > 0 && i < arrays; ++i) {
    copies_.push_back(arena.take(MemoryUse::optimizer, DType::f32, Shape{copied}));
  }
  scratch_ = arena.take(MemoryUse::optimizer, DType::f32, Shape{scratch});
}

bool MatrixUpdate::is_staged(std::size_t matrix) const {
  return pieces_[matrix].size() > 1 || (tier_->is_offloaded() && !pieces_[matrix].empty());
}

bool MatrixUpdate::has(std::size_t segment) const {
  return matrix_rule_of(rules_, segments_of(matrices_)[segment].group) != nullptr;
}

std::vector<std::size_t> MatrixUpdate::update(std::size_t segment, const UpdateStep& step,
                                              device::StreamRef stream) {
  const int unit = segments_of(matrices_)[segment].unit;
  const auto of_unit =
      std::ranges::count_if(segments_of(matrices_), [&](const model::Segment& each) {
        return each.unit == unit && matrix_rule_of(rules_, each.group) != nullptr;
      });
  pending_.push_back(segment);
  if (std::ssize(pending_) < of_unit) {
    return {};
  }
  for (const std::size_t matrix : matrices_.matrices_of(unit)) {
    update_matrix(matrix, step, stream);
  }
  updated_.record(stream);
  return std::exchange(pending_, {});
}

MatrixShard MatrixUpdate::shard_of(std::size_t matrix) const {
  const Shape part = matrices_.mine(matrix);
  const auto value = [&](std::size_t i) {
    return is_staged(matrix)         ? copies_[i].rows(0, part.elements()).reshape(part)
           : pieces_[matrix].empty() ? TensorView(nullptr, DType::f32, part)
                                     : pieces_[matrix].front().values[i];
  };
  MatrixShard shard{.matrix = matrix,
                    .spec = &matrices_.parameters().all()[matrix].spec,
                    .master = value(0),
                    .states = {},
                    .gradient = value(1),
                    .scratch = scratch_};
  for (std::size_t i = 0; i < rule_of(matrix)->states().size(); ++i) {
    shard.states[i] = value(2 + i);
  }
  return shard;
}

void MatrixUpdate::for_each_copy(const MatrixShard& shard, bool gradients,
                                 const std::function<void(TensorView, TensorView)>& body) const {
  std::int64_t row = 0;
  for (const Piece& piece : pieces_[shard.matrix]) {
    const std::int64_t rows = piece.piece->box.extent[0];
    body(shard.master.rows(row, rows), piece.values[0]);
    if (gradients) {
      body(shard.gradient.rows(row, rows), piece.values[1]);
    }
    for (std::size_t i = 0; i + 2 < piece.values.size(); ++i) {
      body(shard.states[i].rows(row, rows), piece.values[2 + i]);
    }
    row += rows;
  }
}

void MatrixUpdate::update_matrix(std::size_t matrix, const UpdateStep& step,
                                 device::StreamRef stream) {
  const MatrixShard shard = shard_of(matrix);
  const bool staged = is_staged(matrix);
  if (staged) {
    for_each_copy(shard, true, [&](const TensorView& copy, const TensorView& original) {
      device::copy(copy.data(), original.data(), copy.bytes(), stream);
    });
  }
  rule_of(matrix)->update(shard, matrices_, step, stream);
  if (!staged) {
    return;
  }
  for_each_copy(shard, false, [&](const TensorView& copy, const TensorView& original) {
    device::copy(original.data(), copy.data(), copy.bytes(), stream);
  });
  if (tier_->file() != nullptr) {
    stream.synchronize();
    for_each_copy(shard, false, [&](const TensorView&, const TensorView& original) {
      tier_->release(original.data(), original.bytes());
    });
  }
}

void MatrixUpdate::synchronize() {
  updated_.wait(waiting_);
  waiting_.ref().synchronize();
}

}  // namespace fourfold::train
