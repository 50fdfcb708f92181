// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/parallel/whole_matrices.hpp>

#include <algorithm>
#include <ranges>

namespace fourfold::parallel {
namespace {

std::int64_t elements_of(const std::vector<Range>& rows, std::int64_t columns) {
  std::int64_t elements = 0;
  for (const Range& range : rows) {
    elements += range.count * columns;
  }
  return elements;
}

/// A block of a matrix, from `to` on, becomes one of another, from `from` on.
void copy_block(const TensorView& target, const Shape& to, const ConstTensorView& source,
                const Shape& from, const Shape& extent, device::StreamRef stream) {
  const auto bytes = [](std::int64_t elements) { return elements * sizeof(float); };
  device::copy_rows(target.as<float>() + linear_index(target.shape(), to), bytes(target.dim(1)),
                    source.as<float>() + linear_index(source.shape(), from), bytes(source.dim(1)),
                    bytes(extent[1]), extent[0], stream);
}

}  // namespace

WholeMatrices::WholeMatrices(const State& state,
                             const std::function<bool(const model::ParameterSpec&)>& is_wanted)
    : parameters_(&state.parameters),
      shard_group_(&state.shard_group),
      tp_(&state.tp),
      cuts_(parameters().all().size()) {
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    const model::ParameterSpec& spec = parameters().all()[i].spec;
    if (!is_wanted(spec)) {
      continue;
    }
    FOURFOLD_EXPECT(spec.shape.rank() == 2);
    Cut& cut = cuts_[i];
    cut.whole = spec.shape;
    cut.box = parameters().all()[i].box;
    cut.rows.resize(state.shards.ranks());
    for (const TensorShard& shard : tensor_shards(spec, tp_->size())) {
      cut.boxes.push_back(shard.box);
      cut.tp_counts.resize(shard.holders.begin);
      cut.tp_counts.push_back(shard.box.elements());
    }
    cut.tp_counts.resize(tp_->size());
    largest = std::max(largest, cut.whole.elements());
  }
  for (int rank = 0; rank < state.shards.ranks(); ++rank) {
    for (const ShardPiece& piece : state.shards.pieces(rank)) {
      if (Cut& cut = cuts_[piece.parameter]; !cut.rows.empty()) {
        cut.rows[rank].push_back({piece.box.offset[0] - cut.box.offset[0], piece.box.extent[0]});
      }
    }
  }
  for (Cut& cut : cuts_) {
    for (const std::vector<Range>& rows : cut.rows) {
      cut.counts.push_back(elements_of(rows, cut.box.extent[1]));
    }
  }
  for (TensorView& memory : memory_) {
    memory = state.arena.take(device::MemoryUse::optimizer, DType::f32, Shape{largest});
  }
}

std::vector<std::size_t> WholeMatrices::matrices_of(int unit) const {
  std::vector<std::size_t> matrices;
  for (std::size_t i = 0; i < cuts_.size(); ++i) {
    if (!cuts_[i].rows.empty() && parameters_->all()[i].spec.unit == unit) {
      matrices.push_back(i);
    }
  }
  return matrices;
}

Shape WholeMatrices::mine(std::size_t matrix) const {
  const Cut& cut = cuts_[matrix];
  const int rank = cut.rows.size() == 1 ? 0 : shard_group_->rank();
  const std::int64_t columns = cut.box.extent[1];
  return {columns == 0 ? 0 : cut.counts[rank] / columns, columns};
}

TensorView WholeMatrices::other_memory(const void* taken, Shape shape) const {
  const TensorView& memory = taken == memory_[0].data() ? memory_[1] : memory_[0];
  return memory.rows(0, shape.elements()).reshape(shape);
}

TensorView WholeMatrices::gather(std::size_t matrix, ConstTensorView part,
                                 device::StreamRef stream) {
  FOURFOLD_EXPECT(part.shape() == mine(matrix));
  const Cut& cut = cuts_[matrix];
  return gather_boxes(cut, gather_box(cut, part, stream), stream);
}

TensorView WholeMatrices::gather_box(const Cut& cut, ConstTensorView part,
                                     device::StreamRef stream) {
  const TensorView gathered = other_memory(nullptr, cut.box.extent);
  if (cut.rows.size() == 1) {
    device::copy(gathered.data(), part.data(), part.bytes(), stream);
    return gathered;
  }
  shard_group_->all_gather(part, gathered, cut.counts, stream).wait(stream);
  const auto order = cut.rows | std::views::join;
  if (std::ranges::is_sorted(order, {}, &Range::begin)) {
    return gathered;
  }
  // In tiles: what a rank has comes together, and lies apart in the matrix.
  const TensorView sorted = other_memory(gathered.data(), cut.box.extent);
  std::int64_t row = 0;
  for (const Range& range : order) {
    device::copy(sorted.rows(range.begin, range.count).data(),
                 gathered.rows(row, range.count).data(), gathered.rows(row, range.count).bytes(),
                 stream);
    row += range.count;
  }
  return sorted;
}

TensorView WholeMatrices::gather_boxes(const Cut& cut, TensorView box, device::StreamRef stream) {
  if (cut.boxes.size() == 1) {
    return box;
  }
  const bool is_first = cut.tp_counts[tp_->rank()] > 0;
  const TensorView gathered = other_memory(box.data(), cut.whole);
  const TensorView sent = is_first ? box : box.rows(0, 0);
  tp_->all_gather(sent, gathered, cut.tp_counts, stream).wait(stream);
  if (cut.boxes.front().extent[1] == cut.whole[1]) {
    return gathered;
  }
  const TensorView whole = other_memory(gathered.data(), cut.whole);
  const TensorView columns = gathered.reshape(Shape{gathered.elements()});
  std::int64_t first = 0;
  for (const Box& each : cut.boxes) {
    const TensorView box_columns = columns.rows(first, each.elements()).reshape(each.extent);
    copy_block(whole, each.offset, box_columns, {0, 0}, each.extent, stream);
    first += each.elements();
  }
  return whole;
}

void WholeMatrices::cut(std::size_t matrix, ConstTensorView whole, TensorView part,
                        device::StreamRef stream) const {
  FOURFOLD_EXPECT(part.shape() == mine(matrix));
  const Cut& cut = cuts_[matrix];
  const int rank = cut.rows.size() == 1 ? 0 : shard_group_->rank();
  std::int64_t row = 0;
  for (const Range& range : cut.rows[rank]) {
    const Shape from{cut.box.offset[0] + range.begin, cut.box.offset[1]};
    copy_block(part, {row, 0}, whole.reshape(cut.whole), from, {range.count, cut.box.extent[1]},
               stream);
    row += range.count;
  }
}

}  // namespace fourfold::parallel
