// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/standstill.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/reduction.hpp>
#include <fourfold/train/evaluator.hpp>

#include <algorithm>

namespace fourfold::train {

Evaluator::Evaluator(const data::TokenDataset& dataset, comm::Mesh& mesh, std::int64_t micro_batch,
                     std::int64_t max_samples, device::Arena& arena)
    : dataset_(&dataset),
      mesh_(&mesh),
      plan_{
          .samples = max_samples > 0 ? std::min(max_samples, dataset.samples()) : dataset.samples(),
          .micro_batch = micro_batch,
          .dp = mesh.shape().dp},
      buffer_(micro_batch, dataset.context(), held_tokens(mesh, dataset.context()), arena),
      loss_sum_(arena.take(device::MemoryUse::workspace, DType::f64, {1})) {}

ForwardPass forward_pass(model::Stage& stage) {
  return {[&stage](const model::Batch& batch, device::StreamRef stream) {
            stage.forward_evaluate(0, batch, stream);
          },
          &stage};
}

std::int64_t Evaluator::fill(std::int64_t round, device::StreamRef stream) {
  const Range samples = plan_.micro_batch_samples(round, mesh_->coordinate().dp);
  return buffer_.fill(*dataset_, samples.count > 0 ? samples : Range{0, 1}, 0, stream);
}

void Evaluator::read_first(device::StreamRef stream) {
  fill(0, stream);
}

Evaluation Evaluator::run(const ForwardPass& model, device::StreamRef stream, const Visit& visit) {
  const Stopwatch watch;
  device::zero(loss_sum_.data(), loss_sum_.bytes(), stream);
  std::int64_t targets = 0;
  for (std::int64_t round = 0; round < plan_.rounds(); ++round) {
    const Range samples = plan_.micro_batch_samples(round, mesh_->coordinate().dp);
    const std::int64_t filled = fill(round, stream);
    model.run(buffer_.batch(), stream);
    if (samples.count == 0) {
      continue;
    }
    targets += filled;
    if (model.head != nullptr) {
      kernels::sum(model.head->loss(0), loss_sum_, true, stream);
    }
    if (visit) {
      visit(samples);
    }
  }
  double local_sum = 0;
  device::copy(&local_sum, loss_sum_.data(), sizeof local_sum, stream);
  stream.synchronize();
  comm::Communicator& plane = mesh_->data_plane();
  const double stage_sum = comm::all_reduce_scalar(plane, local_sum, comm::ReduceOp::sum);
  const double sum =
      comm::all_reduce_scalar(mesh_->axis(comm::Axis::pp), stage_sum, comm::ReduceOp::sum);
  targets = comm::all_reduce_scalar(plane, targets, comm::ReduceOp::sum);
  last_run_s_ = watch.seconds();
  return {.loss = targets > 0 ? sum / static_cast<double>(targets) : 0, .targets = targets};
}

}  // namespace fourfold::train
