// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/shard_layout.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace fourfold::parallel {

/// Elements to which the state of a segment is aligned where it is offloaded: a page of a file.
inline constexpr std::int64_t offloaded_alignment_elements = 1024;

/// What one rank updates and saves of its parameters: all of them, or its share of each segment.
/// The arena owns the memory; masters and weights of f32 are the same memory, unless the masters
/// lie elsewhere.
class ParameterShard {
 public:
  /// The part of one segment. Views have rank 1 and flat.count elements.
  struct Run {
    std::size_t segment = 0;
    Range flat;
    Range state;           ///< elements in memory that has one number per element of the share
    bool vectors = false;  ///< norms and biases; else matrices and embeddings
    bool decay = false;    ///< weight decay applies
    model::OptimizerGroup group = model::OptimizerGroup::others;
    TensorView master;    ///< f32
    TensorView gradient;  ///< f32: where the sum over all ranks is when it is done
    TensorView weight;    ///< compute dtype, made from the master; for f32 the master itself
  };
  /// The part of one parameter, with box.extent as the shape of its views.
  struct Piece {
    const model::Parameter* parameter = nullptr;
    Box box;
    Range state;
    TensorView master;
    TensorView gradient;
  };

  /// All of `parameters`, which have their masters themselves.
  explicit ParameterShard(const model::Parameters& parameters);
  /// The share of one rank: masters and state, and what else ZeRO shards.
  /// @param layout  of the same parameters; borrowed during the call
  /// @param state   where masters lie when zero.offloads_state, and then apart from the weights in
  ///   f32 too
  /// @pre parameters have no masters; what is sharded is double_buffered there
  ParameterShard(const model::Parameters& parameters, const ShardLayout& layout, int rank,
                 const ZeroOptions& zero, device::Arena& arena, device::Arena& state);

  DType compute_dtype() const noexcept { return compute_; }
  /// In flat order; none for segments of which the share is empty.
  std::span<const Run> runs() const noexcept { return runs_; }
  /// Nothing when the share has nothing of the segment.
  const Run* find(std::size_t segment) const noexcept;
  std::span<const Piece> pieces() const noexcept { return pieces_; }
  /// Elements of memory with one number per element of the share, padding included.
  std::int64_t state_elements() const noexcept { return state_elements_; }

  /// One number per element of the share, padding included; absent where masters are the weights.
  TensorView masters() const noexcept { return masters_; }

  /// Draws the initial masters of the share. Blocks the host.
  /// @param drawn  called with each part of the masters that is complete
  void initialise(std::uint64_t seed, device::StreamRef stream,
                  const std::function<void(const TensorView&)>& drawn = {}) const;

 private:
  DType compute_;
  std::int64_t state_elements_ = 0;
  TensorView masters_;
  std::vector<Run> runs_;
  std::vector<Piece> pieces_;
};

}  // namespace fourfold::parallel
