// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What works on tables of the vocabulary and on all parameters, and the copy that is their roof.
#include "cases.hpp"
#include "operands.hpp"

#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/kernels/embedding.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/kernels/reduction.hpp>

#include <fmt/format.h>

#include <cmath>

namespace fourfold::benchmarks {
namespace {

using device::StreamRef;
using device::Tensor;

std::string str(const RowShape& shape) {
  return fmt::format("{}x{}", shape.rows, shape.columns);
}

}  // namespace

CaseGroup copy_roof(const Sizes& sizes) {
  struct Operands {
    Tensor source, target;
  };
  const Shape shape{sizes.copied_bytes / 4};
  const auto one = std::make_shared<Operands>(
      Operands{random_tensor(DType::f32, shape), random_tensor(DType::f32, shape)});
  return {{"copy", fmt::format("{} MiB", sizes.copied_bytes >> 20), Roof::copy,
           2.0 * static_cast<double>(sizes.copied_bytes), 1, [one](int, StreamRef stream) {
             device::copy(one->target.view().data(), one->source.view().data(),
                          one->source.view().bytes(), stream);
           }}};
}

CaseGroup embedding_cases(const Sizes& sizes) {
  struct Operands {
    Tensor token, position, weight, position_weight, y, dweight, dposition;
  };
  const RowShape shape = sizes.embeddings;
  const std::int64_t vocabulary = sizes.vocabulary;
  const std::int64_t context = std::min<std::int64_t>(1024, shape.rows);
  const auto rows = static_cast<double>(shape.rows);
  const auto columns = static_cast<double>(shape.columns);
  const auto words = static_cast<double>(vocabulary);
  const auto all = make_sets(4 * rows * columns, [&] {
    return Operands{random_integers({shape.rows}, vocabulary),
                    counting_integers(shape.rows, context),
                    random_tensor(DType::bf16, {vocabulary, shape.columns}),
                    random_tensor(DType::bf16, {context, shape.columns}),
                    random_tensor(DType::bf16, {shape.rows, shape.columns}),
                    random_tensor(DType::f32, {vocabulary, shape.columns}),
                    random_tensor(DType::f32, {context, shape.columns})};
  });
  const int sets = static_cast<int>(all->size());
  // Of that many random tokens, so many are different: their rows are read and written once, and
  // the rows of the batch once for them and once for their positions.
  const double different = words * (1 - std::exp(rows * std::log1p(-1 / words)));
  return {{"embedding", str(shape), Roof::copy, 4 * rows * columns, sets,
           [all](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::embedding(o.token, o.weight, 0, o.position_weight, o.position, o.y, stream);
           }},
          {"embedding_backward", str(shape), Roof::copy,
           columns * (4 * rows + 8 * (different + static_cast<double>(context))), sets,
           [all](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::embedding_backward(o.token, o.y, 0, o.dweight, o.position, o.dposition,
                                         stream);
           }}};
}

CaseGroup cross_entropy_cases(const Sizes& sizes) {
  struct Operands {
    Tensor logits, target, loss;
  };
  const RowShape shape = sizes.logits;
  const double elements = static_cast<double>(shape.rows) * static_cast<double>(shape.columns);
  const auto all = make_sets(4 * elements, [&] {
    return Operands{random_tensor(DType::bf16, {shape.rows, shape.columns}),
                    random_integers({shape.rows}, sizes.vocabulary),
                    random_tensor(DType::f32, {shape.rows})};
  });
  // A row fits into the second-level cache: once read and once written is what has to be.
  return {{"cross_entropy_forward_backward", str(shape), Roof::copy, 4 * elements,
           static_cast<int>(all->size()),
           [all, vocabulary = sizes.vocabulary](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::cross_entropy_forward_backward(o.logits, o.target, o.loss, vocabulary, 1.0F,
                                                     stream);
           }}};
}

CaseGroup optimizer_cases(const Sizes& sizes) {
  struct Operands {
    Tensor master, exp_avg, exp_avg_sq, gradient, weight, total;
  };
  const Shape shape{sizes.parameters};
  const auto parameters = static_cast<double>(sizes.parameters);
  const auto all = make_sets(18 * parameters, [&] {
    return Operands{random_tensor(DType::f32, shape),
                    random_tensor(DType::f32, shape),
                    random_tensor(DType::f32, shape, 0.0F, 1.0F),
                    random_tensor(DType::f32, shape),
                    random_tensor(DType::bf16, shape),
                    Tensor(DType::f64, Shape{1}, device::MemoryKind::device)};
  });
  const int sets = static_cast<int>(all->size());
  const std::string label = fmt::format("{}", sizes.parameters);
  return {{"adam", label, Roof::copy, 30 * parameters, sets,
           [all](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::adam({.lr = 1e-4F, .weight_decay = 0.1F, .step = 10}, o.master, o.exp_avg,
                           o.exp_avg_sq, o.gradient, o.weight, stream);
           }},
          {"sum_of_squares", label, Roof::copy, 4 * parameters, sets,
           [all](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::sum_of_squares(o.gradient, o.total, false, stream);
           }},
          {"cast", label, Roof::copy, 6 * parameters, sets, [all](int set, StreamRef stream) {
             const Operands& o = (*all)[static_cast<std::size_t>(set)];
             kernels::cast(o.master, o.weight, stream);
           }}};
}

}  // namespace fourfold::benchmarks
