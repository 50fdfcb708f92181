// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "fault_control.hpp"

#include <fourfold/base/log.hpp>

#include <algorithm>
#include <array>
#include <atomic>

namespace fourfold::test {
namespace {

constexpr std::array<std::string_view, 15> product_names{"linear",
                                                         "linear_gelu",
                                                         "backward_input",
                                                         "backward_input_gelu",
                                                         "backward_weight",
                                                         "tile",
                                                         "tile_backward_input",
                                                         "tile_backward_weight",
                                                         "attention_scores",
                                                         "attention_output",
                                                         "query_gradient",
                                                         "key_gradient",
                                                         "value_gradient",
                                                         "softmax_gradient",
                                                         "scores_again"};

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

}  // namespace

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

void add_to(void* data, DType dtype, std::int64_t i, float more) {
  const float before = value_at(data, dtype, i);
  set_at(data, dtype, i, before + more);
  if (value_at(data, dtype, i) != before) {
    note_change();
  }
}

void note_change() {
  control.happened = true;
}

std::int64_t spoiled_column() {
  return control.column;
}

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

}  // namespace fourfold::test
