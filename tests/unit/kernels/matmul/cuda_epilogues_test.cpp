// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Products of cuBLASLt with epilogues, all ways that it has for each, against formulas in f64.
#include "matmul/matmul_algorithm.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/stream.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <thread>
#include <tuple>
#include <vector>

using namespace fourfold;
using device::StreamRef;
using device::Tensor;
using kernels::Epilogue;
using kernels::Gemm;
using kernels::Write;

namespace {

double read(const void* data, DType dtype, std::int64_t i) {
  return dtype == DType::bf16  ? static_cast<float>(static_cast<const BFloat16*>(data)[i])
         : dtype == DType::f16 ? static_cast<float>(static_cast<const Float16*>(data)[i])
                               : static_cast<const float*>(data)[i];
}
void write(void* data, DType dtype, std::int64_t i, double value) {
  const auto narrow = static_cast<float>(value);
  if (dtype == DType::bf16) {
    static_cast<BFloat16*>(data)[i] = BFloat16(narrow);
  } else if (dtype == DType::f16) {
    static_cast<Float16*>(data)[i] = Float16(narrow);
  } else {
    static_cast<float*>(data)[i] = narrow;
  }
}

/// Quarters between -1 and 1.
double number(std::int64_t i, int seed) {
  return static_cast<double>((i * 7 + i / 11 + seed * 3) % 9 - 4) / 4;
}

Tensor filled(DType dtype, std::int64_t elements, int seed) {
  Tensor tensor(dtype, {elements});
  for (std::int64_t i = 0; i < elements; ++i) {
    write(tensor.view().data(), dtype, i, number(i, seed));
  }
  return tensor;
}

const double slope = std::sqrt(2 / std::acos(-1.0));

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(slope * (x + 0.044715 * x * x * x)));
}
double gelu_derivative(double x) {
  const double t = std::tanh(slope * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope * (1 + 3 * 0.044715 * x * x);
}

std::atomic<int> made_apart = 0;

/// What the kernels that this test is without would do, by the host.
void apart(DType dtype, const Gemm& p, StreamRef stream) {
  ++made_apart;
  kernels::multiply(dtype, kernels::without_epilogue(p), stream);
  stream.synchronize();
  for (std::int64_t i = 0; p.epilogue == Epilogue::gelu && i < p.m * p.n; ++i) {
    write(p.c, dtype, i, gelu(read(p.aux_MN, dtype, i)));
  }
  for (std::int64_t i = 0; p.epilogue == Epilogue::gelu_backward && i < p.m * p.n; ++i) {
    write(p.c, dtype, i, read(p.c, dtype, i) * gelu_derivative(read(p.aux_MN, dtype, i)));
  }
  if (p.epilogue == Epilogue::row_sums) {
    std::vector<float> sums(static_cast<std::size_t>(p.m));
    device::copy(sums.data(), p.sums_M, sums.size() * sizeof(float), stream);
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.k; ++j) {
        sums[static_cast<std::size_t>(i)] += static_cast<float>(read(p.a, dtype, j * p.a_row + i));
      }
    }
    device::copy(p.sums_M, sums.data(), sums.size() * sizeof(float), stream);
    stream.synchronize();
  }
}

void add(const float* more, float* sum, std::int64_t count, StreamRef stream) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
  std::vector<float> a(static_cast<std::size_t>(count));
  std::vector<float> b(static_cast<std::size_t>(count));
  device::copy(a.data(), more, bytes, stream);
  device::copy(b.data(), sum, bytes, stream);
  std::ranges::transform(a, b, b.begin(), [](float x, float y) { return x + y; });
  device::copy(sum, b.data(), bytes, stream);
  stream.synchronize();
}

constexpr kernels::EpilogueKernels host_kernels{.apart = apart, .add = add};

struct Size {
  std::int64_t m, n, k;
};

/// A product with an epilogue, its operands and what it must give.
struct Trial {
  Trial(DType dtype_in, Epilogue epilogue, Size size, bool bias, int seed);
  void reset();
  double error() const;  ///< of the worst element, as a share of the largest

  DType dtype;
  Tensor a, b, bias_N, c, aux, sums;
  Gemm product;
  int seed;
};

Trial::Trial(DType dtype_in, Epilogue epilogue, Size size, bool bias, int seed_in)
    : dtype(dtype_in),
      a(filled(dtype, size.m * size.k, seed_in)),
      b(filled(dtype, size.k * size.n, seed_in + 1)),
      bias_N(filled(dtype, size.n, seed_in + 2)),
      c(epilogue == Epilogue::row_sums ? DType::f32 : dtype, {size.m * size.n}),
      aux(dtype, {size.m * size.n}),
      sums(DType::f32, {size.m}),
      seed(seed_in) {
  const bool transposed = epilogue == Epilogue::row_sums;
  product = {.m = size.m,
             .n = size.n,
             .k = size.k,
             .a = a.view().data(),
             .a_transposed = transposed,
             .a_row = transposed ? size.m : size.k,
             .b = b.view().data(),
             .b_transposed = epilogue == Epilogue::gelu,
             .c = c.view().data(),
             .c_row = size.n,
             .c_dtype = c.view().dtype(),
             .write = transposed ? Write::accumulate : Write::replace,
             .bias_N = bias ? bias_N.view().data() : nullptr,
             .epilogue = epilogue,
             .aux_MN = transposed ? nullptr : aux.view().data(),
             .sums_M = transposed ? sums.as<float>() : nullptr};
  reset();
}

void Trial::reset() {
  for (std::int64_t i = 0; i < product.m * product.n; ++i) {
    write(product.c, product.c_dtype, i, number(i, seed + 3));
    write(aux.view().data(), dtype, i, number(i, seed + 4));
  }
  for (std::int64_t i = 0; i < product.m; ++i) {
    sums.as<float>()[i] = static_cast<float>(number(i, seed + 5));
  }
}

double Trial::error() const {
  const Gemm& p = product;
  double worst = 0;
  double largest = 1;
  const auto compare = [&](double actual, double expected) {
    worst = std::max(worst, std::isfinite(actual) ? std::fabs(actual - expected) : HUGE_VAL);
    largest = std::max(largest, std::fabs(expected));
  };
  const auto a_at = [&](std::int64_t i, std::int64_t j) {
    return read(p.a, dtype, p.a_transposed ? j * p.m + i : i * p.k + j);
  };
  for (std::int64_t i = 0; i < p.m * p.n; ++i) {
    const std::int64_t row = i / p.n;
    const std::int64_t column = i % p.n;
    double sum = p.bias_N != nullptr ? read(p.bias_N, dtype, column) : 0;
    for (std::int64_t j = 0; j < p.k; ++j) {
      sum += a_at(row, j) * read(p.b, dtype, p.b_transposed ? column * p.k + j : j * p.n + column);
    }
    const double c_at = read(p.c, p.c_dtype, i);
    if (p.epilogue == Epilogue::gelu) {
      compare(read(p.aux_MN, dtype, i), sum);
      compare(c_at, gelu(sum));
    } else if (p.epilogue == Epilogue::gelu_backward) {
      compare(c_at, sum * gelu_derivative(number(i, seed + 4)));
      compare(read(p.aux_MN, dtype, i), number(i, seed + 4));
    } else {
      compare(c_at, number(i, seed + 3) + sum);
    }
  }
  for (std::int64_t i = 0; p.epilogue == Epilogue::row_sums && i < p.m; ++i) {
    double sum = number(i, seed + 5);
    for (std::int64_t j = 0; j < p.k; ++j) {
      sum += a_at(i, j);
    }
    compare(sums.as<float>()[i], sum);
  }
  return worst / largest;
}

/// 16 bits: roundings of what goes into gelu and of what comes out, and the library's own tanh.
double allowed(const Trial& trial) {
  return trial.product.c_dtype == DType::f32 ? 1e-5 : trial.dtype == DType::bf16 ? 0x1p-7 : 0x1p-9;
}

void run(const Trial& trial, StreamRef stream) {
  kernels::multiply_with_epilogue(trial.dtype, trial.product, host_kernels, stream);
}

/// Chosen products end with the test.
struct Choices {
  ~Choices() { kernels::set_matmul_tuning({}, false); }
};

bool same_bits(const Tensor& x, const Tensor& y) {
  return std::memcmp(x.view().data(), y.view().data(), x.view().bytes()) == 0;
}

}  // namespace

TEST_CASE("every way of a product with an epilogue gives what its formula does", "[products]") {
  const DType dtype = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Epilogue epilogue = GENERATE(Epilogue::gelu, Epilogue::gelu_backward, Epilogue::row_sums);
  const Size size = GENERATE(Size{64, 48, 32}, Size{256, 128, 512}, Size{129, 65, 17});
  const bool bias = epilogue == Epilogue::gelu && GENERATE(false, true);
  Trial trial(dtype, epilogue, size, bias, 1);
  const Choices end;
  kernels::set_matmul_tuning({}, true);
  const std::string product = kernels::kind_of(dtype, trial.product).str();
  const std::vector<std::string> ways = kernels::ways_of(dtype, trial.product);
  CAPTURE(product, ways.size());
  CHECK(std::ranges::count(ways, kernels::apart_way) == 1);
  if (dtype == DType::f32) {
    CHECK(ways.size() == 1);
  }
  for (const std::string& way : ways) {
    CAPTURE(way);
    kernels::set_matmul_tuning({{product, way}}, false);
    const int before = made_apart;
    trial.reset();
    run(trial, {});
    CHECK(trial.error() <= allowed(trial));
    CHECK(made_apart - before == (way == kernels::apart_way ? 1 : 0));
  }
}

TEST_CASE("aux that the library cannot write is made apart", "[products]") {
  const Choices end;
  kernels::set_matmul_tuning({}, true);
  const Trial odd_rows(DType::bf16, Epilogue::gelu, {64, 44, 32}, true, 1);
  CHECK(kernels::ways_of(DType::bf16, odd_rows.product) ==
        std::vector<std::string>{kernels::apart_way});
  const Trial whole(DType::bf16, Epilogue::gelu, {64, 48, 32}, true, 1);
  const Tensor room(DType::bf16, {64 * 48 + 1});
  Gemm unaligned = whole.product;
  unaligned.aux_MN = static_cast<std::byte*>(room.view().data()) + 2;
  CHECK(kernels::ways_of(DType::bf16, unaligned) == std::vector<std::string>{kernels::apart_way});
}

TEST_CASE("without choices the same products give the same bits", "[products]") {
  const Epilogue epilogue = GENERATE(Epilogue::gelu, Epilogue::gelu_backward, Epilogue::row_sums);
  Trial first(DType::bf16, epilogue, {256, 128, 512}, false, 1);
  Trial second(DType::bf16, epilogue, {256, 128, 512}, false, 1);
  run(first, {});
  kernels::forget_algorithms();
  run(second, {});
  CHECK(same_bits(first.c, second.c));
  CHECK(same_bits(first.aux, second.aux));
  CHECK(same_bits(first.sums, second.sums));
  CHECK(first.error() <= allowed(first));
}

TEST_CASE("measured products are right, noted, and made again as they were chosen", "[products]") {
  const Epilogue epilogue = GENERATE(Epilogue::gelu, Epilogue::gelu_backward, Epilogue::row_sums);
  const Choices end;
  kernels::set_matmul_tuning({}, true);
  const device::Stream stream;
  Trial trial(DType::bf16, epilogue, {256, 128, 512}, false, 1);
  for (int call = 0; call < 4; ++call) {  // the product, then with its epilogue
    trial.reset();
    run(trial, stream);
    stream.ref().synchronize();
    CHECK(trial.error() <= allowed(trial));
  }
  const std::vector<kernels::MatmulTuning> choices = kernels::known_matmul_tuning();
  for (const Gemm& product : {trial.product, kernels::without_epilogue(trial.product)}) {
    const std::string name = kernels::kind_of(DType::bf16, product).str();
    CAPTURE(name);
    CHECK(std::ranges::count(choices, name, &kernels::MatmulTuning::product) ==
          (kernels::ways_of(DType::bf16, product).size() > 1 ? 1 : 0));
  }
  for (const kernels::MatmulTuning& choice : choices) {
    CHECK(choice.us > 0);
    CHECK(choice.us <= choice.default_us);
  }
  Trial again[2] = {Trial(DType::bf16, epilogue, {256, 128, 512}, false, 1),
                    Trial(DType::bf16, epilogue, {256, 128, 512}, false, 1)};
  for (Trial& one : again) {
    kernels::set_matmul_tuning(choices, true);
    run(one, stream);
    stream.ref().synchronize();
    CHECK(one.error() <= allowed(one));
  }
  CHECK(same_bits(again[0].c, again[1].c));
  CHECK(kernels::known_matmul_tuning() == choices);
}

TEST_CASE("a choice that the library does not offer is no choice", "[products]") {
  const Choices end;
  Trial trial(DType::bf16, Epilogue::gelu, {64, 48, 32}, true, 1);
  kernels::set_matmul_tuning({{kernels::kind_of(DType::bf16, trial.product).str(), "999 tile 7"}},
                             false);
  run(trial, {});
  CHECK(trial.error() <= allowed(trial));
}

TEST_CASE("threads with streams of their own share products", "[products]") {
  const bool measure = GENERATE(false, true);
  const Choices end;
  kernels::set_matmul_tuning({}, measure);
  std::vector<Trial> trials;  // of one kind each two, with different numbers
  for (const Epilogue epilogue : {Epilogue::gelu, Epilogue::gelu_backward}) {
    for (const int seed : {1, 2}) {
      trials.emplace_back(DType::bf16, epilogue, Size{256, 128, 512}, epilogue == Epilogue::gelu,
                          seed);
    }
  }
  std::vector<std::thread> threads;
  for (const Trial& trial : trials) {
    threads.emplace_back([&trial] {
      const device::Stream stream;
      for (int call = 0; call < 50; ++call) {
        run(trial, stream);
      }
      stream.ref().synchronize();
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const Trial& trial : trials) {
    CHECK(trial.error() <= allowed(trial));
  }
}
