// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul_fault.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <optional>
#include <vector>

namespace fourfold::test {
namespace {

constexpr std::array<std::string_view, 8> product_names{
    "linear",          "linear_gelu", "backward_input",      "backward_input_gelu",
    "backward_weight", "tile",        "tile_backward_input", "tile_backward_weight"};

constexpr std::size_t most_ranks = 8;

struct Control {
  std::atomic<bool> counts = false;
  std::atomic<bool> happened = false;
  std::atomic<int> product = -1;
  int rank = 0;
  std::int64_t call = 0;
  std::int64_t column = 0;
  std::array<std::array<std::atomic<std::int64_t>, most_ranks>, product_names.size()> calls{};
};
Control control;

void reset(int product, int rank, std::int64_t call, std::int64_t column) {
  control.counts = false;
  for (auto& of_ranks : control.calls) {
    std::ranges::fill(of_ranks, 0);
  }
  control.rank = rank;
  control.happened = false;
  control.product = product;
  control.call = call;
  control.column = column;
  control.counts = true;
}

bool is_spoiled(Product product) {
  if (!control.counts) {
    return false;
  }
  const int rank = log::thread_rank();
  const std::int64_t call =
      control.calls[static_cast<std::size_t>(product)].at(static_cast<std::size_t>(rank))++;
  return control.product == static_cast<int>(product) && rank == control.rank &&
         call == control.call;
}

float value_at(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::bf16:
      return static_cast<float>(static_cast<const BFloat16*>(data)[i]);
    case DType::f16:
      return static_cast<float>(static_cast<const Float16*>(data)[i]);
    default:
      return static_cast<const float*>(data)[i];
  }
}

void set_at(void* data, DType dtype, std::int64_t i, float value) {
  switch (dtype) {
    case DType::bf16:
      static_cast<BFloat16*>(data)[i] = BFloat16(value);
      return;
    case DType::f16:
      static_cast<Float16*>(data)[i] = Float16(value);
      return;
    default:
      static_cast<float*>(data)[i] = value;
  }
}

/// The columns [first, first + width) of a result, as they are before a call.
class Spoiler {
 public:
  /// @param accumulates  what the call makes is added to what is there
  Spoiler(Product product, TensorView result, std::int64_t first, std::int64_t width,
          bool accumulates)
      : result_(result), columns_(result.dim(result.shape().rank() - 1)) {
    if (!is_spoiled(product)) {
      return;
    }
    column_ = first + control.column % width;
    for (std::int64_t i = *column_; i < result.elements(); i += columns_) {
      before_.push_back(accumulates ? value_at(result.data(), result.dtype(), i) : 0.0F);
    }
  }
  Spoiler(Product product, TensorView result, bool accumulates)
      : Spoiler(product, result, 0, result.dim(result.shape().rank() - 1), accumulates) {}

  /// After the call: what it made of the column counts twice. @return whether it was this call
  bool spoil(device::StreamRef stream) {
    if (!column_) {
      return false;
    }
    stream.synchronize();
    auto before = before_.begin();
    for (std::int64_t i = *column_; i < result_.elements(); i += columns_) {
      const float made = value_at(result_.data(), result_.dtype(), i);
      set_at(result_.data(), result_.dtype(), i, made + (made - *before++));
    }
    control.happened = true;
    return true;
  }

 private:
  TensorView result_;
  std::int64_t columns_;
  std::optional<std::int64_t> column_;
  std::vector<float> before_;
};

}  // namespace

std::string_view name(Product product) noexcept {
  return product_names[static_cast<std::size_t>(product)];
}

void MatmulFault::arm(Product product, int rank, std::int64_t call, std::int64_t column) {
  reset(static_cast<int>(product), rank, call, column);
}
void MatmulFault::count_only() {
  reset(-1, 0, 0, 0);
}
std::int64_t MatmulFault::calls(Product product, int rank) {
  return control.calls[static_cast<std::size_t>(product)].at(static_cast<std::size_t>(rank));
}
bool MatmulFault::happened() {
  return control.happened;
}
void MatmulFault::disarm() {
  control.counts = false;
}

// The linker's --wrap takes calls of a symbol F to __wrap_F, and those of __real_F to F.
#define REAL_AND_WRAPPED(name, symbol, ...)            \
  void real_##name(__VA_ARGS__) asm("__real_" symbol); \
  void name(__VA_ARGS__) asm("__wrap_" symbol)

REAL_AND_WRAPPED(linear, FOURFOLD_LINEAR, ConstTensorView, ConstTensorView, ConstTensorView,
                 TensorView, device::StreamRef);
REAL_AND_WRAPPED(linear_gelu, FOURFOLD_LINEAR_GELU, ConstTensorView, ConstTensorView,
                 ConstTensorView, TensorView, TensorView, device::StreamRef);
REAL_AND_WRAPPED(backward_input, FOURFOLD_LINEAR_BACKWARD_INPUT, ConstTensorView, ConstTensorView,
                 TensorView, kernels::Write, device::StreamRef);
REAL_AND_WRAPPED(backward_input_gelu, FOURFOLD_LINEAR_BACKWARD_INPUT_GELU, ConstTensorView,
                 ConstTensorView, ConstTensorView, TensorView, device::StreamRef);
REAL_AND_WRAPPED(backward_weight, FOURFOLD_LINEAR_BACKWARD_WEIGHT, ConstTensorView, ConstTensorView,
                 TensorView, TensorView, device::StreamRef);
REAL_AND_WRAPPED(tile, FOURFOLD_LINEAR_TILE, ConstTensorView, ConstTensorView, ConstTensorView,
                 TensorView, std::int64_t, device::StreamRef);
REAL_AND_WRAPPED(tile_backward_input, FOURFOLD_LINEAR_TILE_BACKWARD_INPUT, ConstTensorView,
                 std::int64_t, ConstTensorView, TensorView, kernels::Write, device::StreamRef);
REAL_AND_WRAPPED(tile_backward_weight, FOURFOLD_LINEAR_TILE_BACKWARD_WEIGHT, ConstTensorView,
                 ConstTensorView, std::int64_t, TensorView, TensorView, device::StreamRef);

void linear(ConstTensorView x, ConstTensorView w, ConstTensorView bias, TensorView y,
            device::StreamRef stream) {
  Spoiler spoiler(Product::linear, y, false);
  real_linear(x, w, bias, y, stream);
  spoiler.spoil(stream);
}

void linear_gelu(ConstTensorView x, ConstTensorView w, ConstTensorView bias, TensorView pre,
                 TensorView y, device::StreamRef stream) {
  Spoiler spoiler(Product::linear_gelu, pre, false);
  real_linear_gelu(x, w, bias, pre, y, stream);
  if (spoiler.spoil(stream)) {
    kernels::gelu(pre, y, stream);
  }
}

void backward_input(ConstTensorView dy, ConstTensorView w, TensorView dx, kernels::Write write,
                    device::StreamRef stream) {
  Spoiler spoiler(Product::backward_input, dx, write == kernels::Write::accumulate);
  real_backward_input(dy, w, dx, write, stream);
  spoiler.spoil(stream);
}

void backward_input_gelu(ConstTensorView dy, ConstTensorView w, ConstTensorView pre,
                         TensorView dpre, device::StreamRef stream) {
  Spoiler spoiler(Product::backward_input_gelu, dpre, false);
  real_backward_input_gelu(dy, w, pre, dpre, stream);
  spoiler.spoil(stream);
}

void backward_weight(ConstTensorView x, ConstTensorView dy, TensorView dw, TensorView dbias,
                     device::StreamRef stream) {
  Spoiler spoiler(Product::backward_weight, dw, true);
  real_backward_weight(x, dy, dw, dbias, stream);
  spoiler.spoil(stream);
}

void tile(ConstTensorView x, ConstTensorView w, ConstTensorView bias, TensorView y,
          std::int64_t first, device::StreamRef stream) {
  Spoiler spoiler(Product::tile, y, first, w.dim(0), false);
  real_tile(x, w, bias, y, first, stream);
  spoiler.spoil(stream);
}

void tile_backward_input(ConstTensorView dy, std::int64_t first, ConstTensorView w, TensorView dx,
                         kernels::Write write, device::StreamRef stream) {
  Spoiler spoiler(Product::tile_backward_input, dx, write == kernels::Write::accumulate);
  real_tile_backward_input(dy, first, w, dx, write, stream);
  spoiler.spoil(stream);
}

void tile_backward_weight(ConstTensorView x, ConstTensorView dy, std::int64_t first, TensorView dw,
                          TensorView dbias, device::StreamRef stream) {
  Spoiler spoiler(Product::tile_backward_weight, dw, true);
  real_tile_backward_weight(x, dy, first, dw, dbias, stream);
  spoiler.spoil(stream);
}

}  // namespace fourfold::test
