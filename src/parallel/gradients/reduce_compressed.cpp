// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "piece_reducer.hpp"
#include "power_sgd_reducer.hpp"
#include "quantized_reducer.hpp"
#include "reduction_order.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/gradient_compression.hpp>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

namespace fourfold::parallel {
namespace {

using CopiesOf = std::function<Copies(const model::Parameter&)>;

class CompressedReduction : public GradientReduction {
 public:
  CompressedReduction(const ReductionPlan& plan, const CompressionOptions& options,
                      const CopiesOf& copies_of, ErrorFeedback& errors, device::Arena& arena);

  void begin_step(device::StreamRef stream) override { plan_.parameters->zero_gradients(stream); }
  void needed(model::WeightGroup /*part*/, device::StreamRef /*stream*/) override {}
  void ready(model::WeightGroup part, model::Gradients state, device::StreamRef stream) override;
  void finish(device::StreamRef stream) override;
  void wait(std::size_t segment, device::StreamRef stream) override;
  void finish_step(bool applied) override;
  void forget(device::StreamRef stream) override;
  std::int64_t sent_bytes() const override;

 private:
  struct Bucket {
    std::unique_ptr<BucketReducer> sum;
    std::size_t segment;
    std::size_t ready_after;  ///< so many units are complete
  };
  void add_matrices(std::size_t segment, std::size_t ready_after, const CopiesOf& copies_of,
                    device::Arena& arena);
  void add_low_rank(std::size_t segment, std::span<const model::Parameter* const> matrices,
                    std::size_t ready_after, device::Arena& arena);
  void add_pieces(std::size_t segment, Range flat, bool coded, std::size_t ready_after);
  enum class Way : std::uint8_t { plain, compressed, compressed_copies };
  Way way_of(const model::Parameter& matrix, Copies copies) const;
  void share_wire_memory(device::Arena& arena);
  void start(std::size_t ready, device::StreamRef stream);

  ReductionPlan plan_;
  CompressionOptions options_;
  ErrorFeedback* errors_;
  device::Stream communication_;
  device::Event produced_;
  device::Event summed_;
  std::vector<Bucket> buckets_;
  std::vector<QuantizedReducer*> coded_;  ///< of the buckets, in their order
  FinishingOrder order_;
  std::size_t started_ = 0;
  std::size_t summed_buckets_ = 0;  ///< of those that are started, from the first
};

/// Those that have something in a part of the memory, as they lie.
std::vector<const model::Parameter*> matrices_in(const model::Parameters& parameters, Range part) {
  std::vector<const model::Parameter*> matrices;
  for (const model::Parameter& parameter : parameters) {
    if (intersection(parameter.flat, part).count > 0) {
      matrices.push_back(&parameter);
    }
  }
  std::ranges::sort(matrices, {},
                    [](const model::Parameter* matrix) { return matrix->flat.begin; });
  return matrices;
}

CompressedReduction::CompressedReduction(const ReductionPlan& plan,
                                         const CompressionOptions& options,
                                         const CopiesOf& copies_of, ErrorFeedback& errors,
                                         device::Arena& arena)
    : plan_(plan), options_(options), errors_(&errors), order_(plan.finishing_units) {
  const std::vector<model::Segment>& segments = plan_.parameters->layout().segments;
  for_each_segment(segments, order_, [&](std::size_t segment, std::size_t ready_after) {
    if (segments[segment].unit == model::Segment::every_unit) {
      add_pieces(segment, segments[segment].flat, false, ready_after);
    } else {
      add_matrices(segment, ready_after, copies_of, arena);
    }
  });
  share_wire_memory(arena);
}

CompressedReduction::Way CompressedReduction::way_of(const model::Parameter& matrix,
                                                     Copies copies) const {
  const Shape& shape = matrix.box.extent;
  if (options_.kind == Compression::low_rank) {
    return gains_by_low_rank(shape[0], shape[1], options_.rank) ? Way::compressed : Way::plain;
  }
  return copies == Copies::none    ? Way::compressed
         : copies == Copies::alike ? Way::compressed_copies
                                   : Way::plain;
}

/// Runs of neighbours that travel alike.
void CompressedReduction::add_matrices(std::size_t segment, std::size_t ready_after,
                                       const CopiesOf& copies_of, device::Arena& arena) {
  const Range all = plan_.parameters->layout().segments[segment].flat;
  const std::vector<const model::Parameter*> matrices = matrices_in(*plan_.parameters, all);
  const auto way = [&](const model::Parameter* matrix) {
    return way_of(*matrix, copies_of(*matrix));
  };
  for (auto begin = matrices.begin(); begin != matrices.end();) {
    const Way together = way(*begin);
    const auto end = std::find_if(begin, matrices.end(),
                                  [&](const auto* matrix) { return way(matrix) != together; });
    if (together != Way::plain && options_.kind == Compression::low_rank) {
      add_low_rank(segment, {begin, end}, ready_after, arena);
    } else {
      const std::int64_t first = (*begin)->flat.begin;
      const Range flat{first, (*std::prev(end))->flat.end() - first};
      add_pieces(segment, intersection(flat, all), together != Way::plain, ready_after);
    }
    begin = end;
  }
}

/// Whole matrices: one in tiles comes with its last segment, which is waited for before its others.
void CompressedReduction::add_low_rank(std::size_t segment,
                                       std::span<const model::Parameter* const> matrices,
                                       std::size_t ready_after, device::Arena& arena) {
  const Range all = plan_.parameters->layout().segments[segment].flat;
  std::vector<const model::Parameter*> ending;
  std::ranges::copy_if(matrices, std::back_inserter(ending), [&](const model::Parameter* matrix) {
    return matrix->flat.end() <= all.end();
  });
  if (!ending.empty()) {
    buckets_.push_back({std::make_unique<PowerSgdReducer>(plan_, options_, ending, *errors_, arena),
                        segment, ready_after});
  }
}

/// @param coded  in fewer bits, else as they are
void CompressedReduction::add_pieces(std::size_t segment, Range flat, bool coded,
                                     std::size_t ready_after) {
  const kernels::GradientCodec codec = options_.kind == Compression::bf16
                                           ? kernels::GradientCodec::bf16
                                           : kernels::GradientCodec::int8;
  for_each_bucket(flat, plan_.bucket_bytes, [&](Range piece) {
    Bucket& bucket = buckets_.emplace_back(Bucket{nullptr, segment, ready_after});
    if (coded) {
      auto sum = std::make_unique<QuantizedReducer>(plan_, codec, *errors_, segment, piece);
      coded_.push_back(sum.get());
      bucket.sum = std::move(sum);
    } else {
      bucket.sum = std::make_unique<PieceReducer>(plan_, segment, piece);
    }
  });
}

/// As many coded sums are under way as one has legs: start() sees to it.
void CompressedReduction::share_wire_memory(device::Arena& arena) {
  std::int64_t outgoing = 0;
  std::int64_t incoming = 0;
  for (const QuantizedReducer* sum : coded_) {
    outgoing = std::max(outgoing, sum->outgoing_bytes());
    incoming = std::max(incoming, sum->incoming_bytes());
  }
  const std::size_t turns = coded_.empty() ? 0 : coded_.front()->legs();
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const auto take = [&](std::int64_t bytes) {
      return arena.take(device::MemoryUse::communication, DType::u8, Shape{bytes});
    };
    const TensorView to = take(outgoing);
    const TensorView from = take(incoming);
    for (std::size_t i = turn; i < coded_.size(); i += turns) {
      coded_[i]->use(to, from);
    }
  }
}

void CompressedReduction::ready(model::WeightGroup part, model::Gradients state,
                                device::StreamRef stream) {
  if (state == model::Gradients::complete) {
    order_.add(part.unit);
    start(order_.complete(), stream);
  }
}

/// Before one bucket starts, all others under way go on by a leg: so every rank begins the same
/// legs in the same order, and what came so many buckets before has given its memory back.
void CompressedReduction::start(std::size_t ready, device::StreamRef stream) {
  for (std::size_t i = summed_buckets_; i < started_; ++i) {
    buckets_[i].sum->look_after();
  }
  for (; started_ < buckets_.size() && buckets_[started_].ready_after <= ready; ++started_) {
    bool all_summed = true;
    for (std::size_t i = summed_buckets_; i < started_; ++i) {
      all_summed = buckets_[i].sum->next_leg(communication_) && all_summed;
      summed_buckets_ = all_summed ? i + 1 : summed_buckets_;
    }
    produced_.record(stream);
    produced_.wait(communication_);
    buckets_[started_].sum->start(communication_);
  }
}

void CompressedReduction::finish(device::StreamRef stream) {
  FOURFOLD_EXPECT(order_.complete() == order_.units());
  start(order_.units() + 1, stream);
  FOURFOLD_ENSURE(started_ == buckets_.size());
  for (std::size_t i = summed_buckets_; i < buckets_.size(); ++i) {
    while (!buckets_[i].sum->on_last_leg()) {
      buckets_[i].sum->next_leg(communication_);
    }
  }
  order_.restart();
  started_ = 0;
  summed_buckets_ = 0;
}

void CompressedReduction::wait(std::size_t segment, device::StreamRef stream) {
  for (const Bucket& bucket : buckets_) {
    if (bucket.segment == segment) {
      [[maybe_unused]] const bool summed = bucket.sum->next_leg(communication_);
      FOURFOLD_ENSURE(summed);
    }
  }
  summed_.record(communication_);
  summed_.wait(stream);
}

void CompressedReduction::finish_step(bool applied) {
  errors_->finish_step(applied);
  for (const Bucket& bucket : buckets_) {
    bucket.sum->finish_step(applied);
  }
}

void CompressedReduction::forget(device::StreamRef stream) {
  for (const Bucket& bucket : buckets_) {
    bucket.sum->forget(stream);
  }
}

std::int64_t CompressedReduction::sent_bytes() const {
  std::int64_t bytes = 0;
  for (const Bucket& bucket : buckets_) {
    bytes += bucket.sum->sent_bytes();
  }
  return bytes;
}

}  // namespace

std::unique_ptr<GradientReduction> reduce_compressed(
    const ReductionPlan& plan, const CompressionOptions& options,
    const std::function<Copies(const model::Parameter&)>& copies_of, ErrorFeedback& errors,
    device::Arena& arena) {
  FOURFOLD_EXPECT(options.kind != Compression::none && plan.plane->size() > 1);
  FOURFOLD_EXPECT(options.kind != Compression::low_rank || options.rank >= 1);
  FOURFOLD_EXPECT(plan.bucket_bytes >= 4);
  return std::make_unique<CompressedReduction>(plan, options, copies_of, errors, arena);
}

}  // namespace fourfold::parallel
