// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/range.hpp>
#include <fourfold/train/weight_update.hpp>

#include <cmath>
#include <utility>

namespace fourfold::train {
namespace {

void note_reduced(StepRecorder* recorder, device::StreamRef stream) {
  if (recorder != nullptr) {
    recorder->end(StepPart::reduce, stream);
  }
}

}  // namespace

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

WeightUpdate::WeightUpdate(const State& state, GradientNorm norm, bool norm_decides)
    : state_(state), norm_(std::move(norm)), norm_decides_(norm_decides) {}

void WeightUpdate::begin(const Step& step, StepRecorder* recorder, device::StreamRef stream) {
  const device::Range range(name(StepPart::update));
  step_ = step;
  tried_ = step.goes_on && norm_decides_ && !was_clipped_ && !step.more_changes;
  norm_is_due_ = true;
  if (norm_decides_ && !tried_) {
    wait_for_all_gradients(stream);
    note_reduced(recorder, stream);
    norm_.begin(state_.seams.shard_group(), state_.stages, stream);
    find_norm(stream);
    gradient_scale_ = norm_.scale();
    update_all(Optimizer::Makes::all, false, stream);
    return;
  }
  gradient_scale_ = tried_ ? norm_.unclipped_scale(step.loss_scale, stream) : nullptr;
  update_all(tried_ ? Optimizer::Makes::weights : Optimizer::Makes::all, true, stream);
  note_reduced(recorder, stream);
  norm_.begin(state_.seams.shard_group(), state_.stages, stream);
  if (!step.goes_on) {
    find_norm(stream);
  }
}

WeightUpdate::Outcome WeightUpdate::finish(StepRecorder* recorder, device::StreamRef stream) {
  if (norm_is_due_) {
    find_norm(stream);
  }
  const GradientNorm::Found found = norm_.found(step_.loss_scale, stream);
  was_clipped_ = found.clips;
  Outcome outcome{.norm = found.norm, .tried = std::exchange(tried_, false)};
  if (outcome.tried) {
    if (recorder != nullptr) {
      recorder->begin_validation(stream);
    }
    outcome.redone = !make_tried(stream);
    if (recorder != nullptr) {
      recorder->end_validation(stream);
    }
  }
  return outcome;
}

bool WeightUpdate::weights_are_finite(device::StreamRef stream) const {
  std::vector<TensorView> weights;
  for (const parallel::ParameterShare::Run& run : state_.share.runs()) {
    weights.push_back(run.weight);
  }
  return std::isfinite(norm_.sum_of_squares(weights, stream));  // which cannot overflow f64
}

void WeightUpdate::wait_for_all_gradients(device::StreamRef stream) {
  for (const std::size_t segment : state_.order) {
    state_.seams.wait_gradients(segment, stream);
  }
}

void WeightUpdate::update_all(Optimizer::Makes makes, bool as_reduced, device::StreamRef stream) {
  const device::Range range("optimizer");
  const Optimizer::Step update{
      .update = step_.update, .lr = step_.lr, .gradient_scale = gradient_scale_};
  for (const std::size_t segment : state_.order) {
    if (as_reduced) {
      state_.seams.wait_gradients(segment, stream);
    }
    if (const parallel::ParameterShare::Run* const run = state_.share.find(segment)) {
      state_.optimizer.update(*run, update, stream, makes);
    }
    if (makes != Optimizer::Makes::state && !step_.more_changes) {
      state_.seams.weights_updated(segment, stream);
    }
  }
}

void WeightUpdate::find_norm(device::StreamRef stream) {
  norm_.finish(step_.loss_scale, stream);
  norm_is_due_ = false;
}

bool WeightUpdate::make_tried(device::StreamRef stream) {
  gradient_scale_ = norm_.scale();
  update_all(Optimizer::Makes::state, false, stream);
  if (!was_clipped_) {
    return true;
  }
  state_.seams.wait_weights(stream);  // others may still be gathering the wrong ones
  state_.optimizer.update_weights_from_masters(stream);
  for (const std::size_t segment : state_.order) {
    state_.seams.weights_updated(segment, stream);
  }
  return false;
}

}  // namespace fourfold::train
