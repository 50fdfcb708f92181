// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "gemm.hpp"

#include <fourfold/base/contract.hpp>

#include <oneapi/dnnl/dnnl.hpp>

#include <map>
#include <tuple>

namespace fourfold::kernels {
namespace {

/// All that a primitive is made for.
using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, bool, std::int64_t, bool,
                       std::int64_t, DType, Write, bool>;

struct Primitive {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul matmul;
};

/// One thread's engine, stream and primitives. Ranks may be threads, and a primitive's scratch is
/// not to be shared.
struct Primitives {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::map<Key, Primitive> by_key;
};

/// A training step has a dozen shapes; only generation, whose sequences grow, comes near this.
constexpr std::size_t most_primitives = 512;

/// @param row  elements from one stored row to the next
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, DType dtype, bool transposed,
                          std::int64_t row) {
  return {{rows, columns},
          dtype == DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32,
          transposed ? dnnl::memory::dims{1, row} : dnnl::memory::dims{row, 1}};
}

dnnl::matmul::primitive_desc describe(const Gemm& p, const dnnl::engine& engine) {
  const auto a = matrix(p.m, p.k, DType::bf16, p.a_transposed, p.a_row);
  const auto b = matrix(p.k, p.n, DType::bf16, p.b_transposed, p.b_transposed ? p.k : p.n);
  const auto c = matrix(p.m, p.n, p.c_dtype, false, p.c_row);
  dnnl::primitive_attr attributes;
  if (p.write == Write::accumulate) {
    dnnl::post_ops operations;
    operations.append_sum(1.0F);
    attributes.set_post_ops(operations);
  }
  if (p.bias_N == nullptr) {
    return {dnnl::matmul::desc(a, b, c), attributes, engine};
  }
  return {dnnl::matmul::desc(a, b, matrix(1, p.n, DType::bf16, false, p.n), c), attributes, engine};
}

const Primitive& primitive_for(const Gemm& p, Primitives& primitives) {
  const Key key{p.m,     p.n,       p.k,     p.a_transposed,     p.a_row, p.b_transposed,
                p.c_row, p.c_dtype, p.write, p.bias_N != nullptr};
  auto found = primitives.by_key.find(key);
  if (found == primitives.by_key.end()) {
    if (primitives.by_key.size() >= most_primitives) {
      primitives.by_key.clear();
    }
    const auto description = describe(p, primitives.engine);
    found = primitives.by_key.emplace(key, Primitive{description, dnnl::matmul(description)}).first;
  }
  return found->second;
}

/// oneDNN takes no pointer to const; it only reads sources.
dnnl::memory borrow(const dnnl::memory::desc& description, const dnnl::engine& engine,
                    const void* data) {
  return {description, engine, const_cast<void*>(data)};
}

}  // namespace

void bf16_product_native(const Gemm& p) {
  FOURFOLD_EXPECT(p.c_row >= p.n && p.a_row >= (p.a_transposed ? p.m : p.k));
  thread_local Primitives primitives;
  const Primitive& primitive = primitive_for(p, primitives);
  const dnnl::engine& engine = primitives.engine;
  std::unordered_map<int, dnnl::memory> arguments{
      {DNNL_ARG_SRC, borrow(primitive.description.src_desc(), engine, p.a)},
      {DNNL_ARG_WEIGHTS, borrow(primitive.description.weights_desc(), engine, p.b)},
      {DNNL_ARG_DST, borrow(primitive.description.dst_desc(), engine, p.c)}};
  if (p.bias_N != nullptr) {
    arguments.emplace(DNNL_ARG_BIAS, borrow(primitive.description.bias_desc(), engine, p.bias_N));
  }
  primitive.matmul.execute(primitives.stream, arguments);
  primitives.stream.wait();
}

}  // namespace fourfold::kernels
