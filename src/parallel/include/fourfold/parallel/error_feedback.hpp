// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/shard_layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold::parallel {

/// What compression has left out of a rank's gradients so far (the *error*), to be added to its
/// next ones: one f32 number per element of a matrix, those of gradients of the loss itself. What
/// counts is the sum over the ranks of the data plane: that is what has come and has not been
/// applied yet.
class ErrorFeedback {
 public:
  /// A part of a parameter of which this rank has the sum over all ranks after fold().
  struct Piece {
    const model::Parameter* parameter = nullptr;
    Box box;
    TensorView error;  ///< box.extent
  };

  /// Errors are zero. @param parameters  borrowed
  /// @param layout    of `parameters` among all ranks of the data plane
  /// @param may_skip  steps can end without effect: errors are kept twice, to fall back to
  ErrorFeedback(const model::Parameters& parameters, ShardLayout layout, bool may_skip,
                device::Arena& arena);

  /// @param loss_scale  what gradients of the step that begins are too large by: a power of two
  void begin_step(double loss_scale) noexcept { scale_ = static_cast<float>(loss_scale); }
  /// What an error is to be multiplied by before it is added to a gradient.
  float scale() const noexcept { return scale_; }
  /// What steps before this one have left. Rank 1. @pre `flat` lies in matrices
  TensorView kept(Range flat) const { return view(kept_, flat); }
  /// What this step leaves; may be the same memory.
  TensorView next(Range flat) const { return view(next_, flat); }
  /// Ends a step: what it has left is kept, or, if it had no effect, what was kept before.
  void finish_step(bool applied) noexcept;

  /// Sums the errors of all ranks, each element on the rank that has it in its share; the others
  /// are zero after it. Collective over the data plane. Ordered on `stream`.
  void fold(comm::Communicator& plane, device::StreamRef stream);
  /// What fold() makes this rank hold; a restart on it puts the same there.
  std::vector<Piece> pieces(int plane_rank) const;
  /// This rank's part of a segment of matrices.
  TensorView share(std::size_t segment, int plane_rank) const {
    return kept(layout_.share(segment, plane_rank));
  }

 private:
  TensorView view(std::size_t copy, Range flat) const {
    return memory_[copy].rows(flat.begin, flat.count);
  }

  const model::Parameters* parameters_;
  ShardLayout layout_;
  std::array<TensorView, 2> memory_;  ///< by flat element; the same one twice without may_skip
  std::size_t kept_ = 0;
  std::size_t next_ = 1;
  float scale_ = 1;
};

}  // namespace fourfold::parallel
