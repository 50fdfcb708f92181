// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/tensors.hpp"

#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/norm.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

namespace {

using namespace fourfold;
using namespace fourfold::kernels;
using namespace fourfold::kernels::test;

constexpr float epsilon = 1e-5F;

/// Operands of a layer_norm (or rms_norm) and of its backward pass.
struct Case {
  Case(DType dtype, std::int64_t rows, std::int64_t features)
      : x(random_tensor(dtype, {rows, features}, 1, 2.0, 0.7)),
        weight(random_tensor(dtype, {features}, 2, 0.3, 1.0)),
        bias(random_tensor(dtype, {features}, 3)),
        dy(random_tensor(dtype, {rows, features}, 4)),
        dx(random_tensor(dtype, {rows, features}, 5)),
        dweight(random_tensor(DType::f32, {features}, 6)),
        dbias(random_tensor(DType::f32, {features}, 7)),
        y(dtype, {rows, features}),
        mean(DType::f32, {rows}),
        rstd(DType::f32, {rows}) {}
  device::Tensor x, weight, bias, dy, dx, dweight, dbias, y, mean, rstd;

  void layer_norm_fast() {
    layer_norm(x, weight, bias, y, mean, rstd, epsilon, {});
    layer_norm_backward(dy, x, weight, mean, rstd, dx, dweight, dbias, {});
  }
  void layer_norm_plain() {
    reference::layer_norm(x, weight, bias, y, mean, rstd, epsilon, {});
    reference::layer_norm_backward(dy, x, weight, mean, rstd, dx, dweight, dbias, {});
  }
  void rms_norm_fast() {
    rms_norm(x, weight, y, rstd, epsilon, {});
    rms_norm_backward(dy, x, weight, rstd, dx, dweight, {});
  }
  void rms_norm_plain() {
    reference::rms_norm(x, weight, y, rstd, epsilon, {});
    reference::rms_norm_backward(dy, x, weight, rstd, dx, dweight, {});
  }
};

void check_close(const Case& fast, const Case& plain) {
  const double allowed = tolerance(fast.x.view().dtype());
  CHECK(worst_error(fast.y, plain.y, 1.0) <= allowed);
  CHECK(worst_error(fast.mean, plain.mean, 1.0) <= 4e-6);
  CHECK(worst_error(fast.rstd, plain.rstd, 1.0) <= 4e-6);
  CHECK(worst_error(fast.dx, plain.dx, 4.0) <= allowed);
  // Sums of up to 257 products of size 1.
  CHECK(worst_error(fast.dweight, plain.dweight, 16.0) <= 4e-6);
  CHECK(worst_error(fast.dbias, plain.dbias, 16.0) <= 4e-6);
}

}  // namespace

TEST_CASE("norms equal their references", "[norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  for (const std::int64_t rows : odd_rows) {
    for (const std::int64_t features : odd_features) {
      CAPTURE(name(dtype), rows, features);
      Case fast(dtype, rows, features);
      Case plain(dtype, rows, features);
      // Of a row of one feature nothing is left but rounding, magnified by 1 / sqrt(epsilon).
      if (features > 1) {
        fast.layer_norm_fast();
        plain.layer_norm_plain();
        check_close(fast, plain);
      }
      fast.rms_norm_fast();
      plain.rms_norm_plain();
      check_close(fast, plain);
    }
  }
}

// Whole packs of 16 bytes and others, on both sides of where other threads take a row.
TEST_CASE("norms equal their references where devices cut rows otherwise", "[norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t features = GENERATE(384, 388, 512, 513, 516, 776, 1024, 1028, 1032, 2048, 2049,
                                         2056, 4096, 4100, 4104, 8192, 8193, 8200);
  CAPTURE(name(dtype), features);
  for (const bool centred : {true, false}) {
    Case fast(dtype, 3, features);
    Case plain(dtype, 3, features);
    if (centred) {
      fast.layer_norm_fast();
      plain.layer_norm_plain();
    } else {
      fast.rms_norm_fast();
      plain.rms_norm_plain();
    }
    check_close(fast, plain);
  }
}

TEST_CASE("norms take more rows than there are blocks of the fewest", "[norm]") {
  Case fast(DType::bf16, 16901, 8);
  Case plain(DType::bf16, 16901, 8);
  fast.layer_norm_fast();
  plain.layer_norm_plain();
  check_close(fast, plain);
}

TEST_CASE("norms give the same bits wherever their rows begin", "[norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t features = GENERATE(8, 768, 1016, 1600, 4104, 8200);
  CAPTURE(name(dtype), features);
  Case whole(dtype, 35, features);
  const Case before(dtype, 35, features);
  whole.layer_norm_fast();
  const Shifted x(before.x);
  const Shifted dy(before.dy);
  const Shifted weight(before.weight);
  const Shifted bias(before.bias);
  Shifted y(before.y);
  Shifted dx(before.dx);
  Case shifted(dtype, 35, features);
  layer_norm(x, weight, bias, y, shifted.mean, shifted.rstd, epsilon, {});
  layer_norm_backward(dy, x, weight, shifted.mean, shifted.rstd, dx, shifted.dweight, shifted.dbias,
                      {});
  CHECK(same_bits(whole.y, y));
  CHECK(same_bits(whole.mean, shifted.mean));
  CHECK(same_bits(whole.rstd, shifted.rstd));
  CHECK(same_bits(whole.dx, dx));
  CHECK(same_bits(whole.dweight, shifted.dweight));
  CHECK(same_bits(whole.dbias, shifted.dbias));
  rms_norm(before.x, before.weight, whole.y, whole.rstd, epsilon, {});
  rms_norm(x, weight, y, shifted.rstd, epsilon, {});
  rms_norm_backward(before.dy, before.x, before.weight, whole.rstd, whole.dx, whole.dweight, {});
  rms_norm_backward(dy, x, weight, shifted.rstd, dx, shifted.dweight, {});
  CHECK(same_bits(whole.y, y));
  CHECK(same_bits(whole.dx, dx));
  CHECK(same_bits(whole.dweight, shifted.dweight));
}

// Rows on both sides of where devices cut them otherwise; the last ones no whole packs.
TEST_CASE("a norm of a sum gives the bits of the sum and of its norm", "[norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t features = GENERATE(1, 31, 768, 1600, 4104, 8200, 8201);
  CAPTURE(name(dtype), features);
  Case one(dtype, 5, features);
  const device::Tensor& residual = one.dy;
  Case two(dtype, 5, features);
  add(one.x, residual, two.x, {});
  layer_norm(two.x, two.weight, two.bias, two.y, two.mean, two.rstd, epsilon, {});
  add_layer_norm(one.x, residual, one.weight, one.bias, one.dx, one.y, one.mean, one.rstd, epsilon,
                 {});
  CHECK(same_bits(one.dx, two.x));
  CHECK(same_bits(one.y, two.y));
  CHECK(same_bits(one.mean, two.mean));
  CHECK(same_bits(one.rstd, two.rstd));
  rms_norm(two.x, two.weight, two.y, two.rstd, epsilon, {});
  Shifted in_place(one.x);  // rows that begin anywhere; the sum where x was
  add_rms_norm(in_place, residual, one.weight, in_place, one.y, one.rstd, epsilon, {});
  CHECK(same_bits(in_place, two.x));
  CHECK(same_bits(one.y, two.y));
  CHECK(same_bits(one.rstd, two.rstd));
  const device::Tensor x = copy_of(one.x);
  add_rms_norm(x, one.dy, one.weight, one.dy, one.y, one.rstd, epsilon, {});  // where residual was
  CHECK(same_bits(one.dy, two.x));
  CHECK(same_bits(one.y, two.y));
}

TEST_CASE("norms of sums equal their references", "[norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const std::int64_t features = GENERATE(31, 768, 8201);
  CAPTURE(name(dtype), features);
  Case fast(dtype, 3, features);
  Case plain(dtype, 3, features);
  add_layer_norm(fast.x, fast.dy, fast.weight, fast.bias, fast.dx, fast.y, fast.mean, fast.rstd,
                 epsilon, {});
  reference::add_layer_norm(plain.x, plain.dy, plain.weight, plain.bias, plain.dx, plain.y,
                            plain.mean, plain.rstd, epsilon, {});
  check_close(fast, plain);
  add_rms_norm(fast.x, fast.dy, fast.weight, fast.dx, fast.y, fast.rstd, epsilon, {});
  reference::add_rms_norm(plain.x, plain.dy, plain.weight, plain.dx, plain.y, plain.rstd, epsilon,
                          {});
  check_close(fast, plain);
}

TEST_CASE("layer_norm of a constant row is the bias", "[norm]") {
  Case constant(DType::f32, 2, 129);
  std::fill_n(constant.x.as<float>(), 2 * 129, 3.25F);
  layer_norm(constant.x, constant.weight, constant.bias, constant.y, constant.mean, constant.rstd,
             epsilon, {});
  CHECK(constant.mean.as<float>()[1] == 3.25F);
  CHECK(same_bits(constant.y.view().rows(0, 1), constant.bias));
  CHECK(same_bits(constant.y.view().rows(1, 1), constant.bias));
}

TEST_CASE("a NaN makes its row NaN and no other", "[norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  Case fast(dtype, 3, 129);
  write_element(fast.x, 129 + 40, std::nan(""));
  const auto check_rows = [](ConstTensorView y) {
    for (std::int64_t i = 0; i < 3 * 129; ++i) {
      REQUIRE(std::isnan(read_element(y, i)) == (i / 129 == 1));
    }
  };
  layer_norm(fast.x, fast.weight, fast.bias, fast.y, fast.mean, fast.rstd, epsilon, {});
  check_rows(fast.y);
  layer_norm_backward(fast.dy, fast.x, fast.weight, fast.mean, fast.rstd, fast.dx, fast.dweight,
                      fast.dbias, {});
  check_rows(fast.dx);
  rms_norm(fast.x, fast.weight, fast.y, fast.rstd, epsilon, {});
  check_rows(fast.y);
}

TEST_CASE("layer_norm keeps its accuracy far from zero", "[norm]") {
  Case fast(DType::f32, 3, 768);
  for (std::int64_t i = 0; i < 3 * 768; ++i) {
    fast.x.as<float>()[i] += 1000.0F;
  }
  Case plain(DType::f32, 3, 768);
  std::memcpy(plain.x.as<float>(), fast.x.as<float>(), fast.x.view().bytes());
  layer_norm(fast.x, fast.weight, fast.bias, fast.y, fast.mean, fast.rstd, epsilon, {});
  plain.layer_norm_plain();
  CHECK(worst_error(fast.y, plain.y, 1.0) <= 2e-4);  // E[x^2] - E[x]^2 would be off by 1e-1
}

// The worst rows for a variance that starts from the mean of a row's first elements.
TEST_CASE("layer_norm keeps its accuracy when a row starts far from the rest", "[norm]") {
  const std::int64_t far = GENERATE(1, 32);
  CAPTURE(far);
  Case fast(DType::f32, 3, 768);
  for (std::int64_t i = 0; i < 3 * 768; ++i) {
    fast.x.as<float>()[i] += i % 768 < far ? 1e5F : 0.0F;
  }
  Case plain(DType::f32, 3, 768);
  std::memcpy(plain.x.as<float>(), fast.x.as<float>(), fast.x.view().bytes());
  fast.layer_norm_fast();
  plain.layer_norm_plain();
  CHECK(worst_error(fast.y, plain.y, 1.0) <= 2e-5);
  CHECK(worst_error(fast.rstd, plain.rstd, 0.0) <= 1e-5);
}

TEST_CASE("norm gradients equal finite differences in double", "[norm]") {
  const bool centred = GENERATE(true, false);
  CAPTURE(centred);
  constexpr std::int64_t rows = 3;
  constexpr std::int64_t features = 7;
  Case fast(DType::f32, rows, features);
  const std::vector<double> dy = values(fast.dy);
  // sum(dy * norm(x)) for operands x, then weight, then bias.
  const auto loss = [&](const std::vector<double>& operands) {
    const double* weight = operands.data() + rows * features;
    const double* bias = weight + features;
    double total = 0;
    for (std::int64_t t = 0; t < rows; ++t) {
      const double* x = operands.data() + t * features;
      double mean = 0;
      double square = 0;
      for (std::int64_t d = 0; d < features; ++d) {
        mean += centred ? x[d] / features : 0.0;
      }
      for (std::int64_t d = 0; d < features; ++d) {
        square += (x[d] - mean) * (x[d] - mean) / features;
      }
      for (std::int64_t d = 0; d < features; ++d) {
        const double xhat = (x[d] - mean) / std::sqrt(square + static_cast<double>(epsilon));
        total += dy[static_cast<std::size_t>(t * features + d)] * (xhat * weight[d] + bias[d]);
      }
    }
    return total;
  };
  std::vector<double> operands = values(fast.x);
  for (const device::Tensor* more : {&fast.weight, &fast.bias}) {
    const std::vector<double> appended = values(*more);
    operands.insert(operands.end(), appended.begin(), appended.end());
  }
  const std::vector<double> gradient = finite_differences(operands, loss);
  // The kernels add to what is there.
  const auto expected = [&](const device::Tensor& before, std::ptrdiff_t first) {
    std::vector<double> sum = values(before);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += gradient[static_cast<std::size_t>(first) + i];
    }
    return sum;
  };
  const auto dx = expected(fast.dx, 0);
  const auto dweight = expected(fast.dweight, rows * features);
  const auto dbias = expected(fast.dbias, rows * features + features);
  if (centred) {
    fast.layer_norm_fast();
    CHECK(worst_error(fast.dbias, dbias) <= 1e-6);
  } else {
    fast.rms_norm_fast();
  }
  CHECK(worst_error(fast.dx, dx) <= 1e-6);
  CHECK(worst_error(fast.dweight, dweight) <= 1e-6);
}

TEST_CASE("norms give the same bits again and row by row", "[norm]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  constexpr std::int64_t rows = 101;
  constexpr std::int64_t features = 129;
  Case whole(dtype, rows, features);
  Case again(dtype, rows, features);
  whole.layer_norm_fast();
  again.layer_norm_fast();
  CHECK(same_bits(whole.y, again.y));
  CHECK(same_bits(whole.dx, again.dx));
  CHECK(same_bits(whole.dweight, again.dweight));
  CHECK(same_bits(whole.dbias, again.dbias));
  Case cut(dtype, rows, features);
  for (std::int64_t t = rows - 1; t >= 0; --t) {
    layer_norm(cut.x.view().rows(t, 1), cut.weight, cut.bias, cut.y.view().rows(t, 1),
               cut.mean.view().rows(t, 1), cut.rstd.view().rows(t, 1), epsilon, {});
  }
  CHECK(same_bits(whole.y, cut.y));
  CHECK(same_bits(whole.mean, cut.mean));
  CHECK(same_bits(whole.rstd, cut.rstd));
}

TEST_CASE("weight gradients of norms are sums of fixed blocks in a fixed order", "[norm]") {
  constexpr std::int64_t rows = 101;
  constexpr std::int64_t features = 129;
  constexpr std::int64_t block = 32;
  Case whole(DType::f32, rows, features);
  whole.layer_norm_fast();
  // Blocks on their own, last one first: any schedule over threads gives these partial sums.
  Case cut(DType::f32, rows, features);
  std::vector<device::Tensor> dweight;
  std::vector<device::Tensor> dbias;
  for (std::int64_t first = 96; first >= 0; first -= block) {
    const std::int64_t count = std::min(block, rows - first);
    dweight.emplace_back(DType::f32, Shape{features});
    dbias.emplace_back(DType::f32, Shape{features});
    layer_norm_backward(cut.dy.view().rows(first, count), cut.x.view().rows(first, count),
                        cut.weight, whole.mean.view().rows(first, count),
                        whole.rstd.view().rows(first, count), cut.dx.view().rows(first, count),
                        dweight.back(), dbias.back(), {});
  }
  for (std::int64_t d = 0; d < features; ++d) {
    float weight_sum = 0;
    float bias_sum = 0;
    for (std::size_t b = dweight.size(); b-- > 0;) {
      weight_sum += dweight[b].as<float>()[d];
      bias_sum += dbias[b].as<float>()[d];
    }
    cut.dweight.as<float>()[d] += weight_sum;
    cut.dbias.as<float>()[d] += bias_sum;
  }
  CHECK(same_bits(whole.dx, cut.dx));
  CHECK(same_bits(whole.dweight, cut.dweight));
  CHECK(same_bits(whole.dbias, cut.dbias));
}

TEST_CASE("norms of no rows do nothing", "[norm]") {
  Case empty(DType::f32, 0, 64);
  const device::Tensor before = copy_of(empty.dweight);
  empty.layer_norm_fast();
  empty.rms_norm_fast();
  add_rms_norm(empty.x, empty.dy, empty.weight, empty.x, empty.y, empty.rstd, epsilon, {});
  CHECK(same_bits(empty.dweight, before));
}
