// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bucket_reducer.hpp"

#include <fourfold/comm/work.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/parallel/error_feedback.hpp>
#include <fourfold/parallel/gradient_compression.hpp>
#include <fourfold/parallel/gradient_reduction.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::parallel {

/// The sum of a few whole matrices as products of thin factors (gradient_compression.hpp). All of
/// their factors travel together. Each rank of the data plane makes the whole sum.
class PowerSgdReducer : public BucketReducer {
 public:
  PowerSgdReducer(const ReductionPlan& plan, const CompressionOptions& options,
                  std::span<const model::Parameter* const> matrices, ErrorFeedback& errors,
                  device::Arena& arena);

  void start(device::StreamRef stream) override;
  bool next_leg(device::StreamRef stream) override;
  bool on_last_leg() const override { return leg_ != Leg::first; }
  void look_after() override { work_.test(); }
  void finish_step(bool applied) override;
  /// Begins anew with the factors that a start has.
  void forget(device::StreamRef stream) override;
  std::int64_t sent_bytes() const override;

 private:
  enum class Leg : std::uint8_t { first, second, none };
  /// Where a matrix [N, M] and its factors lie. Factors are by columns: [R, N] and [R, M].
  struct Matrix {
    const model::Parameter* parameter;
    Range left;   ///< in the memory of factors P
    Range right;  ///< in that of factors Q
  };
  Shape shape_of(const Matrix& matrix) const { return matrix.parameter->box.extent; }
  TensorView left(const Matrix& matrix) const;
  TensorView right(TensorView memory, const Matrix& matrix) const;
  /// Gradient and error.
  TensorView sum_here(const Matrix& matrix) const;
  void start_second(device::StreamRef stream);
  void end(device::StreamRef stream);

  CompressionOptions options_;
  comm::Communicator* plane_;
  ErrorFeedback* errors_;
  std::vector<Matrix> matrices_;
  TensorView left_;                  ///< P
  TensorView own_right_;             ///< X^T P of this rank
  std::array<TensorView, 2> right_;  ///< Q of the last step and of this one
  std::size_t kept_ = 0;
  Leg leg_ = Leg::none;
  comm::Work work_;
};

}  // namespace fourfold::parallel
