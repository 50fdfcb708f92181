// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/seams.hpp>
#include <fourfold/parallel/gradient_buckets.hpp>

namespace fourfold::parallel {

/// Data parallelism as a seam: every rank holds the whole model and trains on its own samples; the
/// gradients of a unit are summed over the data plane as soon as the last micro-batch of a step has
/// finished it. With one rank nothing is sent.
class DataParallelSeams : public model::Seams {
 public:
  /// @param data_plane  the ranks that hold the same parameters; borrowed
  /// @param parameters  borrowed
  /// @param bucket_mb   gradients are reduced in pieces of about this many 10^6 bytes
  DataParallelSeams(comm::Communicator& data_plane, const model::Parameters& parameters,
                    double bucket_mb);

  /// Starts sums when `state` is complete; nothing otherwise. Collective then.
  void gradients_ready(int unit, model::Gradients state, device::StreamRef stream) override;

  /// Orders `stream` behind all sums of this step: after it the gradients are those of the global
  /// batch, the same bits on every rank.
  void wait_all(device::StreamRef stream);

 private:
  bool alone_;
  GradientBuckets buckets_;
};

}  // namespace fourfold::parallel
