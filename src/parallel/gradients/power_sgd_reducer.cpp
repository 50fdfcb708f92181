// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "power_sgd_reducer.hpp"

#include "reduction_order.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/compression.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <utility>

namespace fourfold::parallel {

bool gains_by_low_rank(std::int64_t rows, std::int64_t columns, std::int64_t rank) noexcept {
  return 2 * rank * (rows + columns) <= rows * columns;
}

PowerSgdReducer::PowerSgdReducer(const ReductionPlan& plan, const CompressionOptions& options,
                                 std::span<const model::Parameter* const> matrices,
                                 ErrorFeedback& errors, device::Arena& arena)
    : options_(options), plane_(plan.plane), errors_(&errors) {
  std::int64_t left = 0;
  std::int64_t right = 0;
  for (const model::Parameter* const parameter : matrices) {
    const Shape& shape = parameter->box.extent;
    matrices_.push_back(
        {parameter, {left, options.rank * shape[0]}, {right, options.rank * shape[1]}});
    left += options.rank * shape[0];
    right += options.rank * shape[1];
  }
  const auto take = [&](std::int64_t elements) {
    return arena.take(device::MemoryUse::communication, DType::f32, Shape{elements});
  };
  left_ = take(left);
  own_right_ = take(right);
  right_ = {take(right), take(right)};
  if (arena.has_memory()) {
    forget({});
  }
}

TensorView PowerSgdReducer::left(const Matrix& matrix) const {
  return left_.rows(matrix.left.begin, matrix.left.count)
      .reshape({options_.rank, shape_of(matrix)[0]});
}

TensorView PowerSgdReducer::right(TensorView memory, const Matrix& matrix) const {
  return memory.rows(matrix.right.begin, matrix.right.count)
      .reshape({options_.rank, shape_of(matrix)[1]});
}

TensorView PowerSgdReducer::sum_here(const Matrix& matrix) const {
  return errors_->next(matrix.parameter->flat).reshape(shape_of(matrix));
}

void PowerSgdReducer::forget(device::StreamRef stream) {
  for (const Matrix& matrix : matrices_) {
    const model::ParameterSpec& spec = matrix.parameter->spec;
    const PhiloxKey key = philox_key(options_.seed, RandomUse::low_rank_factor,
                                     name_salt(spec.name.data(), spec.name.size()));
    const std::int64_t columns = shape_of(matrix)[1];
    const std::int64_t first = matrix.parameter->box.offset[1];
    std::vector<float> values;
    for (std::int64_t r = 0; r < options_.rank; ++r) {
      for (std::int64_t m = 0; m < columns; ++m) {
        const std::int64_t element = r * spec.shape[1] + first + m;
        values.push_back(normal_float(key, element));
      }
    }
    const TensorView factor = right(right_[kept_], matrix);
    device::copy(factor.data(), values.data(), factor.bytes(), stream);
    stream.synchronize();  // `values` dies here
  }
}

void PowerSgdReducer::start(device::StreamRef stream) {
  for (const Matrix& matrix : matrices_) {
    const Range flat = matrix.parameter->flat;
    const TensorView gradient = matrix.parameter->gradient;
    kernels::add_scaled(gradient, errors_->scale(), errors_->kept(flat), errors_->next(flat),
                        stream);
    kernels::linear(right(right_[kept_], matrix), sum_here(matrix), {}, left(matrix), stream);
  }
  work_ = plane_->all_reduce(left_, comm::ReduceOp::sum, stream);
  leg_ = Leg::first;
}

void PowerSgdReducer::start_second(device::StreamRef stream) {
  for (const Matrix& matrix : matrices_) {
    kernels::orthonormalise_rows(left(matrix), stream);
    kernels::linear_backward_input(left(matrix), sum_here(matrix), right(own_right_, matrix),
                                   kernels::Write::replace, stream);
  }
  const TensorView sum = right_[1 - kept_];
  device::copy(sum.data(), own_right_.data(), sum.bytes(), stream);
  work_ = plane_->all_reduce(sum, comm::ReduceOp::sum, stream);
  leg_ = Leg::second;
}

void PowerSgdReducer::end(device::StreamRef stream) {
  for (const Matrix& matrix : matrices_) {
    const TensorView next = right(right_[1 - kept_], matrix);
    kernels::low_rank_product(left(matrix), next, matrix.parameter->gradient, stream);
    kernels::low_rank_remainder(left(matrix), right(own_right_, matrix), 1.0F / errors_->scale(),
                                sum_here(matrix), stream);
    // A column that found nothing tries again in the old direction, not in none.
    kernels::replace_zero_rows(right(right_[kept_], matrix), next, stream);
  }
  leg_ = Leg::none;
}

bool PowerSgdReducer::next_leg(device::StreamRef stream) {
  if (leg_ == Leg::none) {
    return true;
  }
  work_.wait(stream);
  if (leg_ == Leg::first) {
    start_second(stream);
    return false;
  }
  end(stream);
  return true;
}

void PowerSgdReducer::finish_step(bool applied) {
  kept_ = applied ? 1 - kept_ : kept_;
}

std::int64_t PowerSgdReducer::sent_bytes() const {
  return (all_reduced(left_.elements(), *plane_) + all_reduced(own_right_.elements(), *plane_)) *
         f32_bytes;
}

}  // namespace fourfold::parallel
