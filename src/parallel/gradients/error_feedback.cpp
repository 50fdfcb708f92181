// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/parallel/error_feedback.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::parallel {
namespace {

/// Matrices come first.
std::int64_t matrix_elements(const model::FlatLayout& layout) {
  std::int64_t end = 0;
  for (const model::Segment& segment : layout.segments) {
    end = segment.has_vectors() ? end : std::max(end, segment.flat.end());
  }
  return end;
}

}  // namespace

ErrorFeedback::ErrorFeedback(const model::Parameters& parameters, ShardLayout layout, bool may_skip,
                             device::Arena& arena)
    : parameters_(&parameters), layout_(std::move(layout)) {
  const auto take = [&] {
    return arena.take(device::MemoryUse::gradients, DType::f32,
                      Shape{matrix_elements(parameters.layout())});
  };
  memory_[0] = take();
  memory_[1] = may_skip ? take() : memory_[0];
}

void ErrorFeedback::finish_step(bool applied) noexcept {
  if (applied) {
    std::swap(kept_, next_);
  }
}

void ErrorFeedback::fold(comm::Communicator& plane, device::StreamRef stream) {
  FOURFOLD_EXPECT(plane.size() == layout_.ranks());
  const std::vector<model::Segment>& segments = parameters_->layout().segments;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].has_vectors()) {
      continue;
    }
    const Range all = segments[i].flat;
    const Range mine = layout_.share(i, plane.rank());
    plane
        .reduce_scatter(kept(all), view(0, mine), layout_.counts(i, all), comm::ReduceOp::sum,
                        stream)
        .wait(stream);
    for (const Range others :
         {Range{all.begin, mine.begin - all.begin}, Range{mine.end(), all.end() - mine.end()}}) {
      const TensorView rest = view(0, others);
      device::zero(rest.data(), rest.bytes(), stream);
    }
  }
  kept_ = 0;  // where pieces() shows it
  next_ = 1;
}

std::vector<ErrorFeedback::Piece> ErrorFeedback::pieces(int plane_rank) const {
  std::vector<Piece> pieces;
  for (const ShardPiece& piece : layout_.pieces(plane_rank)) {
    const model::Parameter& parameter = parameters_->all()[piece.parameter];
    if (!parameter.spec.is_vector()) {
      pieces.push_back({&parameter, piece.box, view(0, piece.flat).reshape(piece.box.extent)});
    }
  }
  return pieces;
}

}  // namespace fourfold::parallel
