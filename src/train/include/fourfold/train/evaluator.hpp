// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/stage.hpp>
#include <fourfold/train/batch_loader.hpp>

#include <cstdint>
#include <functional>

namespace fourfold::train {

struct Evaluation {
  double loss = 0;           ///< mean over the targets, nats per token; 0 without targets
  std::int64_t targets = 0;  ///< that it was measured on
};

/// A model that is evaluated: its forward pass without dropout, and the stage with the head, or
/// nullptr where another rank of the pipeline has it.
struct ForwardPass {
  std::function<void(const model::Batch& batch, device::StreamRef stream)> run;
  model::Stage* head = nullptr;
};
/// Of one stage that is the whole model. @param stage  borrowed
ForwardPass forward_pass(model::Stage& stage);

/// Measures a model's loss on held-back data, in order, each sample once: samples are
/// shared over the dp axis, the tokens of each over the cp axis.
class Evaluator {
 public:
  /// @param dataset  in sequential order; borrowed
  /// @param max_samples  0: all of it
  Evaluator(const data::TokenDataset& dataset, comm::Mesh& mesh, std::int64_t micro_batch,
            std::int64_t max_samples, device::Arena& arena);

  /// Called after each micro-batch of this rank with the samples it held; the stage's slot 0 has
  /// their logits and losses.
  using Visit = std::function<void(Range samples)>;

  /// Collective over the mesh; the same answer on all ranks. Uses the stages' slot 0, which
  /// must wait for no backward pass. Blocks the host. All ranks make as many forward passes, in
  /// which weights may be gathered among them: one that has no samples left runs the first of all
  /// and counts nothing.
  Evaluation run(const ForwardPass& model, device::StreamRef stream, const Visit& visit = {});

  /// Reads what this rank begins run() with, so that data that do not fit the model are known
  /// before there is anything to evaluate. Local. @throws UserError (data_corrupt) as run()
  void read_first(device::StreamRef stream);

  /// Samples that run() goes through, all ranks together.
  std::int64_t samples() const noexcept { return plan_.samples; }
  /// Wall time of the newest run() on this rank; 0 before the first.
  double last_run_s() const noexcept { return last_run_s_; }

 private:
  /// @return targets of the samples of this rank in that round, or of the first where it has none
  std::int64_t fill(std::int64_t round, device::StreamRef stream);

  const data::TokenDataset* dataset_;
  comm::Mesh* mesh_;
  data::EvaluationPlan plan_;
  MicroBatchBuffer buffer_;
  TensorView loss_sum_;  ///< f64 scalar
  double last_run_s_ = 0;
};

}  // namespace fourfold::train
