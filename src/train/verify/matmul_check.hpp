// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "attention_rows.hpp"
#include "matmul_sums.hpp"

#include <fourfold/model/matmul_observer.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fourfold::train {

/// What checking the products of a step found.
struct MatmulErrors {
  std::int64_t products = 0;  ///< that were checked
  double largest = 0;         ///< Departure::error
  std::string first_wrong;    ///< in words, the first beyond the tolerance; empty: none

  void add(MatmulErrors of_other_rank);
};

/// Checks every product of one rank's model where it is made, from what went into it: check_sums()
/// and what is beside it. So a product that goes wrong is found even where the rest of the step
/// hides it, and none that is right is suspected because of one before it. Blocks the host at each
/// product, and takes as much host memory as one product's operands and results in f32.
class MatmulCheck final : public model::MatmulObserver {
 public:
  /// @param tolerance  of Departure::error
  MatmulCheck(int rank, double tolerance) : rank_(rank), tolerance_(tolerance) {}

  /// Products from here on are those of step `step` (from 0).
  void begin(std::int64_t step);
  /// What was found in this step.
  const MatmulErrors& errors() const noexcept { return errors_; }

  void enter_attention(int layer) override { layer_ = layer; }
  void before(const model::LinearMatmul& product, device::StreamRef stream) override;
  void after(const model::LinearMatmul& product, device::StreamRef stream) override;
  void before(const model::AttentionMatmul& product, device::StreamRef stream) override;
  void after(const model::AttentionMatmul& product, device::StreamRef stream) override;
  void before(const kernels::AttentionGradients& product, device::StreamRef stream) override;
  void after(const kernels::AttentionGradients& product, device::StreamRef stream) override;

 private:
  Departure check_linear(const model::LinearMatmul& product, device::StreamRef stream) const;
  /// What attention and its gradients both have.
  template <class Product>
  void read_attention(const Product& product, device::StreamRef stream);
  PhiloxKey next_key() const;
  void note(const std::string& product, const Departure& departure);

  int rank_;
  double tolerance_;
  std::int64_t step_ = 0;
  int layer_ = 0;
  MatmulErrors errors_;
  std::map<std::string, int, std::less<>> calls_;  ///< of this step, by the words for a product
  // What was there before the product that comes:
  std::vector<float> result_before_;
  std::vector<float> sums_before_;
  HostAttention attention_;
};

}  // namespace fourfold::train
