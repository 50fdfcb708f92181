// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul/matmul_algorithm.hpp"

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

using namespace fourfold;
using namespace fourfold::kernels;

namespace {

alignas(256) std::array<std::byte, 1024> memory;

Gemm weight_gradient() {
  return {.m = 768,
          .n = 3072,
          .k = 65536,
          .a = memory.data(),
          .a_transposed = true,
          .a_row = 768,
          .b = memory.data(),
          .c = memory.data(),
          .c_row = 3072,
          .c_dtype = DType::f32,
          .write = Write::accumulate};
}

}  // namespace

TEST_CASE("a product's name says all that its ways depend on", "[products]") {
  CHECK(kind_of(DType::bf16, weight_gradient()).str() ==
        "bf16>f32 768x3072x65536 TN rows 768 3072 accumulate plain aligned 256 256 256 256 256");
  const std::vector<std::function<void(Gemm&)>> changes{
      [](Gemm& p) { p.m = 1; },
      [](Gemm& p) { p.n = 1; },
      [](Gemm& p) { p.k = 1; },
      [](Gemm& p) { p.a_transposed = false; },
      [](Gemm& p) { p.b_transposed = true; },
      [](Gemm& p) { p.a_row = 800; },
      [](Gemm& p) { p.c_row = 3080; },
      [](Gemm& p) { p.c_dtype = DType::bf16; },
      [](Gemm& p) { p.write = Write::replace; },
      [](Gemm& p) { p.epilogue = Epilogue::gelu; },
      [](Gemm& p) { p.epilogue = Epilogue::gelu_backward; },
      [](Gemm& p) { p.epilogue = Epilogue::row_sums; },
      [](Gemm& p) { p.a = memory.data() + 128; },
      [](Gemm& p) { p.b = memory.data() + 128; },
      [](Gemm& p) { p.c = memory.data() + 128; },
      [](Gemm& p) { p.bias_N = memory.data(); },
      [](Gemm& p) { p.bias_N = memory.data() + 2; },
      [](Gemm& p) { p.aux_MN = memory.data() + 16; },
  };
  std::set<std::string> names{kind_of(DType::bf16, weight_gradient()).str(),
                              kind_of(DType::f16, weight_gradient()).str()};
  for (const auto& change : changes) {
    Gemm product = weight_gradient();
    change(product);
    names.insert(kind_of(DType::bf16, product).str());
  }
  CHECK(names.size() == changes.size() + 2);
}

TEST_CASE("alignments count up to 256", "[products]") {
  CHECK(alignment_of(nullptr) == 256);
  CHECK(alignment_of(memory.data()) == 256);
  CHECK(alignment_of(memory.data() + 512) == 256);
  CHECK(alignment_of(memory.data() + 64) == 64);
  CHECK(alignment_of(memory.data() + 48) == 16);
  CHECK(alignment_of(memory.data() + 7) == 1);
}

TEST_CASE("a product without its epilogue is what the epilogue comes after", "[products]") {
  float sums = 0;
  Gemm product = weight_gradient();
  product.epilogue = Epilogue::row_sums;
  product.sums_M = &sums;
  CHECK(kind_of(DType::bf16, without_epilogue(product)).str() ==
        kind_of(DType::bf16, weight_gradient()).str());
  CHECK(without_epilogue(product).sums_M == nullptr);
  product.epilogue = Epilogue::gelu;
  product.aux_MN = memory.data() + 16;
  CHECK(without_epilogue(product).c == memory.data() + 16);
  product.epilogue = Epilogue::gelu_backward;
  CHECK(without_epilogue(product).c == memory.data());
  CHECK(without_epilogue(product).aux_MN == nullptr);
}

TEST_CASE("the way with the least median is taken, but the first one unless it is clearly beaten",
          "[products]") {
  CHECK(fastest_algorithm({{5, 5, 5}}).best == 0);
  CHECK(fastest_algorithm({{5, 5, 5}, {4, 9, 4}, {4.5, 4.5, 4.5}}).best == 1);
  CHECK(fastest_algorithm({{5, 5, 5}, {1, 9, 9}}).best == 0);  // one fast round is none
  CHECK(fastest_algorithm({{100, 100, 100}, {99.5, 99.5, 99.5}}).best == 0);
  CHECK(fastest_algorithm({{100, 100, 100}, {98.5, 98.5, 98.5}}).best == 1);
  const AlgorithmTimes refused = fastest_algorithm({{}, {3, 2, 1}});
  CHECK(refused.best == 1);
  CHECK(std::isinf(refused.median_us[0]));
  CHECK(refused.median_us[1] == 2);
  CHECK(fastest_algorithm({{}, {}}).best == 0);
}

TEST_CASE("choices are known once they are told or measured", "[products]") {
  const std::vector<MatmulTuning> told{{"b", "66 tile 20", 10, 12}, {"a", apart_way, 3, 3}};
  set_matmul_tuning(told, true);
  CHECK(measures_products());
  CHECK(known_algorithm("a") == apart_way);
  CHECK(known_algorithm("b") == "66 tile 20");
  CHECK_FALSE(known_algorithm("c"));
  note_choice({"c", "67 tile 1", 1, 2});
  const std::vector<MatmulTuning> expected{told[1], told[0], {"c", "67 tile 1", 1, 2}};
  CHECK(known_matmul_tuning() == expected);
  set_matmul_tuning({}, false);  // as it was
  CHECK_FALSE(measures_products());
  CHECK(known_matmul_tuning().empty());
}
