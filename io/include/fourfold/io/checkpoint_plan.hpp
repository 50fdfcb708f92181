// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a checkpoint holds and which rank writes which part of it. The plan is a pure function of
/// (tensors, who holds which box of them), so every rank works it out alone and nobody gathers.
/// Tensor, pipeline and ZeRO shards differ from replicas only in their boxes and holders.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/tensor_state.hpp>

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// Names one logical tensor: the parameter's logical name and the state. Names consist of letters,
/// digits, '.', '_' and '-', at most 255 of them, and are neither "." nor "..".
struct TensorId {
  std::string name;
  TensorState state = TensorState::weight;

  std::string str() const;  ///< "layers.17.attn.q_proj.weight/exp_avg"
  friend bool operator==(const TensorId&, const TensorId&) = default;
  friend std::strong_ordering operator<=>(const TensorId&, const TensorId&) = default;
};

/// A set of ranks as a mesh makes them: first + i0 * stride0 + i1 * stride1 + ..., slowest axis
/// first. A value that never allocates, however many ranks it stands for.
class RankSet {
 public:
  struct Axis {
    int count = 1;
    int stride = 0;
    friend auto operator<=>(const Axis&, const Axis&) = default;
  };

  /// Rank 0 alone.
  RankSet() = default;
  /// @pre counts are positive; every stride is larger than the span of the axes after it, so that
  /// the ranks are distinct and ascend
  RankSet(int first, std::span<const Axis> axes);
  static RankSet single(int rank) { return RankSet(rank, {}); }
  /// 0 .. ranks - 1
  static RankSet all(int ranks);

  int size() const noexcept;
  /// The `index`-th rank in ascending order. @pre 0 <= index < size()
  int operator[](int index) const;
  bool contains(int rank) const noexcept;
  /// Slowest first; unused ones have count 1.
  std::span<const Axis> axes() const noexcept { return axes_; }
  /// All of them, ascending.
  std::vector<int> members() const;
  /// Some order; equal sets are equal.
  friend auto operator<=>(const RankSet&, const RankSet&) = default;

 private:
  int first_ = 0;
  std::array<Axis, 4> axes_{};
};

/// A box of a tensor and the ranks that each hold a bit-identical copy of it.
struct HeldBox {
  Box box;
  RankSet holders;
};

/// One logical tensor of the state and how it lies on the ranks. The boxes cover the tensor and do
/// not overlap. The same on all ranks.
struct TensorLayout {
  TensorId id;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<HeldBox> boxes;

  /// Every one of `ranks` ranks holds all of it (data parallelism).
  static TensorLayout replicated(TensorId id, DType dtype, Shape shape, int ranks);
};

/// A part of a tensor that one rank writes: a dataset of that rank's payload file.
struct PlannedExtent {
  std::size_t tensor = 0;    ///< index into the layouts
  std::size_t held_box = 0;  ///< index into that layout's boxes; the extent lies inside this box
  Box box;                   ///< in coordinates of the tensor
  int writer = 0;
};

struct PlanOptions {
  /// Boxes are not cut into parts smaller than this.
  std::int64_t smallest_part_bytes = std::int64_t{4} << 20;
  /// The payload file that each rank writes into, counted from 0 without gaps. Empty: each its own.
  std::vector<int> file_of_rank = {};
};

/// For PlanOptions: `files` files (at most one per rank), each of ranks that follow one another.
std::vector<int> shared_files(int ranks, int files);
/// One for all ranks of a node. @param rank_hosts  the name of each rank's node
std::vector<int> files_by_node(std::span<const std::string> rank_hosts);

struct SavePlan {
  /// Ordered by (tensor, held box, position); empty boxes have no extent.
  std::vector<PlannedExtent> extents;
  /// Bytes that each rank writes.
  std::vector<std::int64_t> bytes_of_rank;
};

/// Each held box is cut along its slowest dim that is longer than one into at most as many parts as
/// it has holders, and the parts, largest first, go to the holder that has least to write so far
/// (the lowest rank among equals). Deterministic; the same on all ranks when the input is.
/// @throws UserError (internal) naming the tensor when names are not as TensorId says or repeat,
///   boxes leave their tensor, overlap or miss elements, or a holder is not a rank of the run
SavePlan plan_save(std::span<const TensorLayout> layouts, int ranks,
                   const PlanOptions& options = {});

/// Hands out items to ranks of sets that may overlap, the largest first: always to the rank of its
/// set that has fewest bytes so far, the lowest among equals.
/// @param holders_of     the set that an item is for
/// @param bytes_of_rank  what ranks have already, to which this adds
/// @return the rank of each item
std::vector<int> share_out(std::span<const std::int64_t> bytes,
                           const std::function<const RankSet&(std::size_t item)>& holders_of,
                           std::span<std::int64_t> bytes_of_rank);

/// Checks that `boxes` lie in a tensor of `shape`, share no element and miss none.
/// @return nothing, or what is wrong with them. O(n log n) for boxes of a mesh.
std::optional<std::string> cover_defect(const Shape& shape, std::span<const Box> boxes);

/// XXH3-128 over everything that identifies a plan's input (ids, dtypes, shapes, boxes, holders):
/// ranks compare it before they act on their plans.
std::string plan_fingerprint(std::span<const TensorLayout> layouts, int ranks,
                             const PlanOptions& options = {});

/// XXH3-128 over ids, dtypes and shapes only: equal for one model on any mesh.
std::string model_fingerprint(std::span<const TensorLayout> layouts);

}  // namespace fourfold::io
