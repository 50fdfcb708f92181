// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/cross_entropy.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <limits>
#include <numeric>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

/// Columns [first, first + count) as a tensor of their own.
device::Tensor columns_of(ConstTensorView whole_TV, std::int64_t first, std::int64_t count) {
  device::Tensor part(whole_TV.dtype(), {whole_TV.dim(0), count});
  for (std::int64_t t = 0; t < whole_TV.dim(0); ++t) {
    for (std::int64_t v = 0; v < count; ++v) {
      write_element(part, t * count + v, read_element(whole_TV, t * whole_TV.dim(1) + first + v));
    }
  }
  return part;
}

/// Cuts the vocabulary at `widths`, runs the three kernels for each part, and compares loss and
/// gradient with those of the whole row.
void check_cut(DType dtype, const std::vector<std::int64_t>& widths, double scale) {
  const std::int64_t tokens = 17;
  const std::int64_t vocabulary = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
  const auto parts = std::ssize(widths);
  CAPTURE(name(dtype), vocabulary, parts, scale);
  const device::Tensor whole = random_tensor(dtype, {tokens, vocabulary}, 3, scale);
  const device::Tensor target = targets(tokens, vocabulary);

  std::vector<device::Tensor> logits;
  device::Tensor statistics(DType::f32, {parts, tokens, part_statistics});
  std::int64_t first = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t width = widths[static_cast<std::size_t>(part)];
    logits.push_back(columns_of(whole, first, width));
    const TensorView mine = statistics.view().rows(part, 1).reshape({tokens, part_statistics});
    cross_entropy_part(logits.back(), first, target, mine, {});
    device::Tensor plain(DType::f32, {tokens, part_statistics});
    reference::cross_entropy_part(logits.back(), first, target, plain, {});
    CHECK(worst_error(mine, plain, 1.0) <= 4e-6);
    first += width;
  }
  device::Tensor loss(DType::f32, {tokens});
  device::Tensor normaliser(DType::f32, {tokens, 2});
  cross_entropy_join(statistics, target, loss, normaliser, {});
  device::Tensor plain_loss(DType::f32, {tokens});
  device::Tensor plain_normaliser(DType::f32, {tokens, 2});
  reference::cross_entropy_join(statistics, target, plain_loss, plain_normaliser, {});
  CHECK(worst_error(loss, plain_loss, 1.0) <= 4e-6);
  CHECK(worst_error(normaliser, plain_normaliser, 1e-3) <= 4e-6);

  const device::Tensor gradient = copy_of(whole);
  reference::cross_entropy_forward_backward(gradient, target, plain_loss, vocabulary, 0.25F, {});
  CHECK(worst_error(loss, plain_loss, 1.0) <= 4e-6);
  first = 0;
  for (std::int64_t part = 0; part < parts; ++part) {
    const device::Tensor& mine = logits[static_cast<std::size_t>(part)];
    const device::Tensor plain = copy_of(mine);
    cross_entropy_part_gradient(mine, first, target, normaliser, 0.25F, {});
    reference::cross_entropy_part_gradient(plain, first, target, plain_normaliser, 0.25F, {});
    const std::int64_t width = mine.shape()[1];
    const double bound = tolerance(dtype) + 1e-6 * scale;
    CHECK(worst_error(mine, plain, 1e-6) <= bound);
    CHECK(worst_error(mine, columns_of(gradient, first, width), 1e-6) <= bound);
    first += width;
  }
}

}  // namespace

TEST_CASE("cross-entropy in parts equals cross-entropy", "[cross_entropy]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  check_cut(dtype, {101}, 3);
  check_cut(dtype, {64, 37}, 3);
  check_cut(dtype, {1, 129, 0, 7}, 3);      // a part without columns
  check_cut(dtype, {5000, 5001, 4999}, 1);  // several chunks, large sums
  check_cut(dtype, {1024, 512, 8}, 3);      // whole packs
  check_cut(dtype, {33, 32}, 40);           // exponentials that vanish
}

TEST_CASE("parts of cross-entropy give the same bits wherever their rows begin",
          "[cross_entropy]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t tokens = 9;
  constexpr std::int64_t columns = 1008;
  const device::Tensor logits = random_tensor(dtype, {tokens, columns}, 1);
  const Shifted shifted(logits);
  const device::Tensor target = targets(tokens, 2 * columns);
  device::Tensor statistics[2] = {device::Tensor(DType::f32, {tokens, part_statistics}),
                                  device::Tensor(DType::f32, {tokens, part_statistics})};
  cross_entropy_part(logits, columns / 2, target, statistics[0], {});
  cross_entropy_part(shifted, columns / 2, target, statistics[1], {});
  CHECK(same_bits(statistics[0], statistics[1]));
  device::Tensor normaliser = random_tensor(DType::f32, {tokens, 2}, 2, 0.1, 5.0);
  cross_entropy_part_gradient(logits, columns / 2, target, normaliser, 0.25F, {});
  cross_entropy_part_gradient(shifted, columns / 2, target, normaliser, 0.25F, {});
  CHECK(same_bits(logits, shifted.view()));
}

#if FOURFOLD_CONTRACTS
TEST_CASE("a part of more columns than an int counts is a contract violation", "[cross_entropy]") {
  const std::int64_t columns = std::numeric_limits<std::int32_t>::max();
  const TensorView logits(nullptr, DType::bf16, {0, columns});
  const TensorView none(nullptr, DType::f32, {0, part_statistics});
  const ConstTensorView target(nullptr, DType::i32, {0});
  CHECK_THROWS_AS(cross_entropy_part(logits, 0, target, none, {}), ContractViolation);
  CHECK_THROWS_AS(cross_entropy_part_gradient(logits, 0, target, none, 1.0F, {}),
                  ContractViolation);
}
#endif
