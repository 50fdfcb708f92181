// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Kernels that see each element once. Bytes are those that have to move: statistics and weights of
/// a row's width are counted where they are not small beside the rows.
#include "cases.hpp"
#include "matmul/gemm.hpp"
#include "operands.hpp"

#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/norm.hpp>
#include <fourfold/kernels/rotary.hpp>

#include <fmt/format.h>

namespace fourfold::benchmarks {
namespace {

using device::StreamRef;
using device::Tensor;

constexpr float epsilon = 1e-5F;

std::string str(const RowShape& shape) {
  return fmt::format("{}x{}", shape.rows, shape.columns);
}

/// @param per_element, per_row  bytes
double bytes_of(const RowShape& shape, int per_element, int per_row = 0) {
  return static_cast<double>(shape.rows) *
         static_cast<double>(per_element * shape.columns + per_row);
}

struct NormOperands {
  Tensor x, y, dx, weight, mean, rstd, dweight, dbias;

  explicit NormOperands(const RowShape& shape)
      : x(random_tensor(DType::bf16, {shape.rows, shape.columns})),
        y(random_tensor(DType::bf16, {shape.rows, shape.columns})),
        dx(random_tensor(DType::bf16, {shape.rows, shape.columns})),
        weight(random_tensor(DType::bf16, {shape.columns})),
        mean(random_tensor(DType::f32, {shape.rows})),
        rstd(random_tensor(DType::f32, {shape.rows})),
        dweight(random_tensor(DType::f32, {shape.columns})),
        dbias(random_tensor(DType::f32, {shape.columns})) {}
};

}  // namespace

CaseGroup layer_norm_cases(const RowShape& shape) {
  const auto all = make_sets(bytes_of(shape, 4), [&] { return NormOperands(shape); });
  const int sets = static_cast<int>(all->size());
  return {{"layer_norm", str(shape), Roof::copy, bytes_of(shape, 4, 8), sets,
           [all](int set, StreamRef stream) {
             const NormOperands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::layer_norm(o.x, o.weight, o.weight, o.y, o.mean, o.rstd, epsilon, stream);
           }},
          {"add_layer_norm", str(shape), Roof::copy, bytes_of(shape, 8, 8), sets,
           [all](int set, StreamRef stream) {
             const NormOperands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::add_layer_norm(o.dx, o.x, o.weight, o.weight, o.dx, o.y, o.mean, o.rstd,
                                     epsilon, stream);
           }},
          {"layer_norm_backward", str(shape), Roof::copy, bytes_of(shape, 8, 8), sets,
           [all](int set, StreamRef stream) {
             const NormOperands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::layer_norm_backward(o.y, o.x, o.weight, o.mean, o.rstd, o.dx, o.dweight,
                                          o.dbias, stream);
           }}};
}

CaseGroup rms_norm_cases(const Sizes& sizes) {
  const RowShape shape = sizes.rms_norm;
  const auto all = make_sets(bytes_of(shape, 4), [&] { return NormOperands(shape); });
  const int sets = static_cast<int>(all->size());
  return {{"rms_norm", str(shape), Roof::copy, bytes_of(shape, 4, 4), sets,
           [all](int set, StreamRef stream) {
             const NormOperands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::rms_norm(o.x, o.weight, o.y, o.rstd, epsilon, stream);
           }},
          {"add_rms_norm", str(shape), Roof::copy, bytes_of(shape, 8, 4), sets,
           [all](int set, StreamRef stream) {
             const NormOperands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::add_rms_norm(o.dx, o.x, o.weight, o.dx, o.y, o.rstd, epsilon, stream);
           }},
          {"rms_norm_backward", str(shape), Roof::copy, bytes_of(shape, 8, 4), sets,
           [all](int set, StreamRef stream) {
             const NormOperands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::rms_norm_backward(o.y, o.x, o.weight, o.rstd, o.dx, o.dweight, stream);
           }}};
}

CaseGroup gelu_cases(const Sizes& sizes) {
  struct Operands {
    Tensor x, y, dx;
  };
  const RowShape shape = sizes.gelu;
  const auto tensor = [&] { return random_tensor(DType::bf16, {shape.rows, shape.columns}); };
  const auto all = make_sets(bytes_of(shape, 4), [&] {
    return Operands{tensor(), tensor(), tensor()};
  });
  const int sets = static_cast<int>(all->size());
  return {
      {"gelu", str(shape), Roof::copy, bytes_of(shape, 4), sets,
       [all](int set, StreamRef stream) {
         const Operands& o = (*all)[static_cast<std::size_t>(set)];
         kernels::activate(kernels::Activation::gelu_tanh, o.x, o.y, stream);
       }},
      {"gelu_backward", str(shape), Roof::copy, bytes_of(shape, 6), sets,
       [all](int set, StreamRef stream) {
         const Operands& o = (*all)[static_cast<std::size_t>(set)];
         kernels::activate_backward(kernels::Activation::gelu_tanh, o.y, o.x, o.dx, stream);
       }},
      {"add", str(shape), Roof::copy, bytes_of(shape, 6), sets, [all](int set, StreamRef stream) {
         const Operands& o = (*all)[static_cast<std::size_t>(set)];
         kernels::add(o.x, o.y, o.dx, stream);
       }}};
}

CaseGroup swiglu_cases(const Sizes& sizes) {
  struct Operands {
    Tensor gate_up, y, dgate_up;
  };
  const RowShape shape = sizes.swiglu;
  const auto tensor = [&](int parts) {
    return random_tensor(DType::bf16, {shape.rows, parts * shape.columns});
  };
  const auto all = make_sets(bytes_of(shape, 6), [&] {
    return Operands{tensor(2), tensor(1), tensor(2)};
  });
  const int sets = static_cast<int>(all->size());
  return {{"swiglu", str(shape), Roof::copy, bytes_of(shape, 6), sets,
           [all](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::activate_gated(kernels::Activation::silu, o.gate_up, o.y, stream);
           }},
          {"swiglu_backward", str(shape), Roof::copy, bytes_of(shape, 10), sets,
           [all](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::activate_gated_backward(kernels::Activation::silu, o.y, o.gate_up, o.dgate_up,
                                              stream);
           }}};
}

CaseGroup column_sum_cases(const Sizes& sizes) {
  struct Operands {
    Tensor dy, sum;
  };
  CaseGroup cases;
  for (const RowShape& shape : {sizes.layer_norms.front(), sizes.gelu}) {
    const auto all = make_sets(bytes_of(shape, 2), [&] {
      return Operands{random_tensor(DType::bf16, {shape.rows, shape.columns}),
                      random_tensor(DType::f32, {shape.columns})};
    });
    cases.push_back({"column_sums", str(shape), Roof::copy, bytes_of(shape, 2),
                     static_cast<int>(all->size()), [all, shape](int set, StreamRef stream) {
                       const Operands& o = (*all)[static_cast<std::size_t>(set)];
                       kernels::add_column_sums(DType::bf16, o.dy.view().data(), shape.columns,
                                                o.sum.as<float>(), shape.rows, shape.columns,
                                                stream);
                     }});
  }
  return cases;
}

CaseGroup rotary_cases(const Sizes& sizes) {
  struct Operands {
    Tensor x, cos_sin, position;
  };
  const AttentionSize size = sizes.rotated;
  const std::int64_t features = (size.heads + size.kv_heads) * size.head_dim;
  const RowShape shape{size.batch * size.tokens, features};
  const auto all = make_sets(bytes_of(shape, 4), [&] {
    return Operands{random_tensor(DType::bf16, {shape.rows, features}),
                    random_tensor(DType::f32, {size.tokens, size.head_dim}),
                    counting_integers(size.tokens, size.tokens)};
  });
  return {{"rotary", str(shape), Roof::copy, bytes_of(shape, 4), static_cast<int>(all->size()),
           [all, size, features](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             // Query and key heads lie side by side, and turn alike.
             kernels::rotary({o.x.view().data(), DType::bf16, size.tokens * features, features},
                             size.batch, size.tokens, size.heads + size.kv_heads, size.head_dim,
                             o.cos_sin, o.position, false, stream);
           }}};
}

}  // namespace fourfold::benchmarks
