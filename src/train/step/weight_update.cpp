// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/range.hpp>
#include <fourfold/train/step_recorder.hpp>
#include <fourfold/train/weight_update.hpp>

#include <cmath>
#include <utility>

namespace fourfold::train {

std::vector<std::size_t> update_order(const model::Parameters& parameters) {
  const std::vector<model::Segment>& segments = parameters.layout().segments;
  std::vector<std::size_t> order;
  for (const bool vectors : {false, true}) {
    for (std::size_t i = segments.size(); i-- > 0;) {
      if ((segments[i].unit == model::Segment::every_unit) == vectors) {
        order.push_back(i);
      }
    }
  }
  return order;
}

WeightUpdate::WeightUpdate(const parallel::ParameterShard& share, parallel::TrainingHooks& hooks,
                           Optimizer& optimizer, std::span<const std::size_t> order,
                           GradientNorm norm, bool norm_decides)
    : share_(share),
      hooks_(hooks),
      optimizer_(optimizer),
      order_(order),
      norm_(std::move(norm)),
      norm_decides_(norm_decides) {}

void WeightUpdate::run(const UpdateStep& step, double loss_scale, bool more_changes,
                       const std::function<void()>& reduced, device::StreamRef stream) {
  const device::Range range(name(StepPart::update));
  const auto find_norm = [&] {
    reduced();
    norm_.find(hooks_.shard_group(), loss_scale, stream);
  };
  if (norm_decides_) {
    wait_for_all_gradients(stream);
    find_norm();
  }
  update_all(step, more_changes, !norm_decides_, stream);
  if (!norm_decides_) {
    find_norm();
  }
}

bool WeightUpdate::weights_are_finite(device::StreamRef stream) const {
  std::vector<TensorView> weights;
  for (const parallel::ParameterShard::Run& run : share_.runs()) {
    weights.push_back(run.weight);
  }
  return std::isfinite(norm_.sum_of_squares(weights, stream));  // which cannot overflow f64
}

void WeightUpdate::wait_for_all_gradients(device::StreamRef stream) {
  for (const std::size_t segment : order_) {
    hooks_.wait_gradients(segment, stream);
  }
}

void WeightUpdate::update_all(UpdateStep step, bool more_changes, bool as_reduced,
                              device::StreamRef stream) {
  const device::Range range("optimizer");
  step.gradient_scale = norm_decides_ ? norm_.scale() : nullptr;
  for (const std::size_t segment : order_) {
    if (as_reduced) {
      hooks_.wait_gradients(segment, stream);
    }
    for (const std::size_t updated : optimizer_.update(segment, step, stream)) {
      if (!more_changes) {
        hooks_.weights_updated(updated, stream);
      }
    }
  }
}

}  // namespace fourfold::train
