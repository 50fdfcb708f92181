// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_features.hpp"

namespace fourfold::train {

void LocalReplicas::after_update(std::int64_t completed_steps, device::StreamRef stream) {
  met_ = false;
  if (outer_->ends_round(completed_steps)) {
    meet(stream);
  }
}

void LocalReplicas::prepare_save(device::StreamRef stream) {
  if (!met_) {
    hooks_->wait_weights(stream);
    meet(stream);
  }
  outer_->average(*optimizer_, stream);
}

void LocalReplicas::meet(device::StreamRef stream) {
  optimizer_->synchronize();
  outer_->meet(stream);
  make_weights_(stream);
  met_ = true;
}

}  // namespace fourfold::train
