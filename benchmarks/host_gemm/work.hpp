// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace fourfold::benchmarks {

/// One call of a kernel at one shape, `per_step` times in a step of GPT-2 124M.
struct Work {
  std::string name;
  std::string shape;
  double flop = 0;
  int per_step = 1;
  bool is_product = true;  ///< counts for the ceiling
  std::function<void()> run;
  double best_s = std::numeric_limits<double>::infinity();
};

/// The products of linear layers of one micro-batch, forward and backward, on operands that they
/// share where the model does not (so that memory suffices); random contents.
std::vector<Work> products(DType dtype, std::int64_t tokens);

/// Causal attention of one layer of the micro-batch, forward and backward. Only visible pairs count
/// as arithmetic, and the backward pass has five products for the forward pass's two.
std::vector<Work> attentions(DType dtype, std::int64_t batch, std::int64_t tokens);

}  // namespace fourfold::benchmarks
