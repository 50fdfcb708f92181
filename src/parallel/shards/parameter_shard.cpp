// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/parameter_shard.hpp>

#include <algorithm>

namespace fourfold::parallel {
namespace {

using device::MemoryUse;

std::int64_t aligned(std::int64_t element, std::int64_t alignment) {
  return (element + alignment - 1) / alignment * alignment;
}

/// The part of a run's view that a piece has.
TensorView part(const TensorView& view, Range flat, const ShardPiece& piece) {
  return view.rows(piece.flat.begin - flat.begin, piece.flat.count).reshape(piece.box.extent);
}

std::vector<ParameterShard::Piece> views_of(const std::vector<ShardPiece>& pieces,
                                            const model::Parameters& parameters,
                                            std::span<const ParameterShard::Run> runs) {
  std::vector<ParameterShard::Piece> views;
  for (const ShardPiece& piece : pieces) {
    const auto run = std::ranges::find_if(runs, [&](const ParameterShard::Run& each) {
      return each.flat.begin <= piece.flat.begin && piece.flat.end() <= each.flat.end();
    });
    FOURFOLD_ASSERT(run != runs.end());
    const std::int64_t after = piece.flat.begin - run->flat.begin;
    views.push_back({&parameters.all()[piece.parameter],
                     piece.box,
                     {run->state.begin + after, piece.flat.count},
                     part(run->master, run->flat, piece),
                     part(run->gradient, run->flat, piece)});
  }
  return views;
}

}  // namespace

ParameterShard::ParameterShard(const model::Parameters& parameters)
    : compute_(parameters.compute_dtype()),
      state_elements_(parameters.layout().elements),
      masters_(compute_ == DType::f32 ? TensorView() : parameters.masters()) {
  const std::vector<model::Segment>& segments = parameters.layout().segments;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Range flat = segments[i].flat;
    runs_.push_back({i, flat, flat, segments[i].has_vectors(), segments[i].decay, segments[i].group,
                     parameters.masters().rows(flat.begin, flat.count),
                     parameters.gradient_memory().at(flat), parameters.weight_memory().at(flat)});
  }
  for (const model::Parameter& parameter : parameters) {
    pieces_.push_back(
        {&parameter, parameter.box, parameter.flat, parameter.master, parameter.gradient});
  }
}

ParameterShard::ParameterShard(const model::Parameters& parameters, const ShardLayout& layout,
                               int rank, const ZeroOptions& zero, device::Arena& arena,
                               device::Arena& state)
    : compute_(parameters.compute_dtype()) {
  FOURFOLD_EXPECT(!parameters.masters());
  const std::vector<model::Segment>& segments = parameters.layout().segments;
  const std::int64_t alignment = zero.offloads_state ? offloaded_alignment_elements : 16;
  std::int64_t matrix_elements = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const Range flat = layout.share(i, rank);
    if (flat.count > 0) {
      const bool vectors = segments[i].has_vectors();
      runs_.push_back({i,
                       flat,
                       {state_elements_, flat.count},
                       vectors,
                       segments[i].decay,
                       segments[i].group,
                       {},
                       {},
                       {}});
      state_elements_ += aligned(flat.count, alignment);
      matrix_elements = vectors ? matrix_elements : state_elements_;
    }
  }
  const auto take = [&](bool needed, MemoryUse use, DType dtype, std::int64_t elements) {
    return needed ? arena.take(use, dtype, Shape{elements}) : TensorView();
  };
  if (zero.offloads_state || compute_ != DType::f32) {
    device::Arena& memory = zero.offloads_state ? state : arena;
    masters_ = memory.take(MemoryUse::optimizer, DType::f32, Shape{state_elements_});
  }
  const TensorView weights =
      take(zero.gather_each_unit, MemoryUse::weights, compute_, matrix_elements);
  const TensorView gradients =
      take(zero.reduce_each_micro_batch, MemoryUse::gradients, DType::f32, matrix_elements);
  for (Run& run : runs_) {
    const auto of = [&](TensorView memory) {
      return memory.rows(run.state.begin, run.state.count);
    };
    const bool matrices = !run.vectors;
    run.weight =
        zero.gather_each_unit && matrices ? of(weights) : parameters.weight_memory().at(run.flat);
    run.master = masters_ ? of(masters_) : run.weight;
    run.gradient = zero.reduce_each_micro_batch && matrices
                       ? of(gradients)
                       : parameters.gradient_memory().at(run.flat);
  }
  pieces_ = views_of(layout.pieces(rank), parameters, runs_);
}

const ParameterShard::Run* ParameterShard::find(std::size_t segment) const noexcept {
  const auto run = std::ranges::find(runs_, segment, &Run::segment);
  return run == runs_.end() ? nullptr : &*run;
}

void ParameterShard::initialise(std::uint64_t seed, device::StreamRef stream,
                                const std::function<void(const TensorView&)>& drawn) const {
  constexpr std::int64_t elements_at_once = std::int64_t{1} << 20;
  for (const Piece& piece : pieces_) {
    const std::int64_t rows = piece.box.extent[0];
    const std::int64_t row_elements = rows == 0 ? 0 : piece.box.elements() / rows;
    const std::int64_t most =
        std::max<std::int64_t>(1, elements_at_once / std::max<std::int64_t>(1, row_elements));
    for (std::int64_t begin = 0; begin < rows; begin += most) {
      Box part = piece.box;
      part.offset[0] += begin;
      part.extent[0] = std::min(most, rows - begin);
      const TensorView values = piece.master.rows(begin, part.extent[0]);
      model::draw_initial(piece.parameter->spec, part, seed, values, stream);
      if (drawn) {
        drawn(values);
      }
    }
  }
}

}  // namespace fourfold::parallel
