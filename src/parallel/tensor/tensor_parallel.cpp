// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>

#include <utility>

namespace fourfold::parallel {

using device::MemoryUse;

TensorParallel::TensorParallel(comm::Communicator& tp, const TensorParallelOptions& options,
                               device::Arena& arena)
    : tp_(std::make_unique<RecordedCommunicator>(tp)),
      sequence_parallel_(options.sequence_parallel),
      counts_(tp.size()) {
  if (alone()) {
    return;
  }
  if (sequence_parallel_) {
    const Shape all{options.rows, options.hidden};
    gathered_TD_ = arena.take(MemoryUse::communication, options.compute, all);
    ahead_TD_ = arena.take(MemoryUse::communication, options.compute, all);
  }
  statistics_ = arena.take(MemoryUse::communication, DType::f32,
                           {tp.size(), options.rows, kernels::part_statistics});
  normaliser_T2_ = arena.take(MemoryUse::communication, DType::f32, {options.rows, 2});
}

Range TensorParallel::residual_rows(std::int64_t rows) const {
  return cuts_rows() ? even_part(rows, tp_->size(), tp_->rank()) : Range{0, rows};
}

MovedMemories TensorParallel::moved_memory() const {
  MovedMemories moved;
  add_moved(moved, *tp_, {MemoryUse::communication, MemoryUse::activations, MemoryUse::workspace});
  return moved;
}

void TensorParallel::count_rows(std::int64_t rows, std::int64_t features) {
  for (int rank = 0; rank < tp_->size(); ++rank) {
    counts_[rank] = even_part(rows, tp_->size(), rank).count * features;
  }
}

comm::Work TensorParallel::start_gather(ConstTensorView x_RD, TensorView all_TD,
                                        device::StreamRef stream) {
  FOURFOLD_EXPECT(x_RD.dim(0) == residual_rows(all_TD.dim(0)).count);
  count_rows(all_TD.dim(0), x_RD.dim(1));
  return tp_->all_gather(x_RD, all_TD, counts_, stream);
}

ConstTensorView TensorParallel::gather_rows(ConstTensorView x_RD, std::int64_t rows,
                                            device::StreamRef stream) {
  if (!cuts_rows()) {
    return x_RD;
  }
  if (ahead_of_ == x_RD.data() && ahead_of_ != nullptr) {
    ahead_.wait(stream);
    ahead_of_ = nullptr;
    std::swap(gathered_TD_, ahead_TD_);
  } else {
    start_gather(x_RD, gathered_TD_.rows(0, rows), stream).wait(stream);
  }
  return gathered_TD_.rows(0, rows);
}

void TensorParallel::prefetch_rows(ConstTensorView x_RD, std::int64_t rows,
                                   device::StreamRef stream) {
  if (!cuts_rows()) {
    return;
  }
  FOURFOLD_EXPECT(ahead_of_ == nullptr);
  ahead_ = start_gather(x_RD, ahead_TD_.rows(0, rows), stream);
  ahead_of_ = x_RD.data();
}

void TensorParallel::reduce_rows(TensorView partial_TD, TensorView y_RD, device::StreamRef stream) {
  if (!cuts_rows()) {
    FOURFOLD_EXPECT(partial_TD.data() == y_RD.data());
    if (!alone()) {
      tp_->all_reduce(y_RD, comm::ReduceOp::sum, stream).wait(stream);
    }
    return;
  }
  count_rows(partial_TD.dim(0), partial_TD.dim(1));
  tp_->reduce_scatter(partial_TD, y_RD, counts_, comm::ReduceOp::sum, stream).wait(stream);
}

void TensorParallel::cross_entropy(model::VocabularyPart part, TensorView logits_TV,
                                   ConstTensorView target_T, TensorView loss_T,
                                   std::optional<float> gradient_scale, device::StreamRef stream) {
  if (alone()) {
    ParallelHooks::cross_entropy(part, logits_TV, target_T, loss_T, gradient_scale, stream);
    return;
  }
  const std::int64_t rows = logits_TV.dim(0);
  const std::int64_t numbers = rows * kernels::part_statistics;
  const Shape all{tp_->size(), rows, kernels::part_statistics};
  const TensorView all_PT3(statistics_.data(), DType::f32, all);
  const TensorView mine_T3 = all_PT3.rows(tp_->rank(), 1).reshape({rows, kernels::part_statistics});
  const TensorView normaliser = normaliser_T2_.rows(0, rows);
  kernels::cross_entropy_part(logits_TV, part.first_column, target_T, mine_T3, stream);
  counts_.assign(counts_.size(), numbers);
  tp_->all_gather(mine_T3, all_PT3, counts_, stream).wait(stream);
  kernels::cross_entropy_join(all_PT3, target_T, loss_T, normaliser, stream);
  if (gradient_scale) {
    kernels::cross_entropy_part_gradient(logits_TV, part.first_column, target_T, normaliser,
                                         *gradient_scale, stream);
  }
}

}  // namespace fourfold::parallel
