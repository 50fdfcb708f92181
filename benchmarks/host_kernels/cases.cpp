// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "measure.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/activation.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/kernels/dropout.hpp>
#include <fourfold/kernels/embedding.hpp>
#include <fourfold/kernels/norm.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/kernels/reduction.hpp>

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace fourfold::benchmarks {
namespace {

using Half = std::uint16_t;
using Word = std::uint32_t;

// Shapes of GPT-2 124M; rows enough that no operand fits a cache.
constexpr std::int64_t rows = 16384;
constexpr std::int64_t hidden = 768;
constexpr std::int64_t ffn_rows = 8192;
constexpr std::int64_t ffn = 3072;
constexpr std::int64_t tokens = 512;
constexpr std::int64_t vocabulary = 50257;
constexpr std::int64_t padded_vocabulary = 50304;
constexpr std::int64_t parameters = 16 << 20;

/// A tensor that a case's closure keeps, filled with numbers between -2 and 2 so that no run meets
/// subnormals (memory that was never written would all be one page of zeros).
std::shared_ptr<device::Tensor> filled(DType dtype, Shape shape, float scale = 1.0F) {
  auto tensor = std::make_shared<device::Tensor>(dtype, shape);
  for (std::int64_t i = 0; i < shape.elements(); ++i) {
    const float value = scale * (static_cast<float>(i * 2654435761U % 4001U) * 1e-3F - 2.0F);
    switch (dtype) {
      case DType::bf16:
        tensor->as<BFloat16>()[i] = BFloat16(value);
        break;
      case DType::i32:
        tensor->as<std::int32_t>()[i] = static_cast<std::int32_t>(i * 7919 % vocabulary);
        break;
      default:
        tensor->as<float>()[i] = value;
    }
  }
  return tensor;
}

/// Names the cases of a group and knows the size of their elements.
struct Group {
  DType dtype;
  std::string shape;
  std::int64_t elements;
  int size = static_cast<int>(size_in_bytes(dtype));
  CaseGroup cases;

  Group(DType type, std::int64_t first, std::int64_t second)
      : dtype(type), shape(fmt::format("{}x{}", first, second)), elements(first * second) {}
  void add(const char* kernel, const Mix& mix, double exps, std::function<void()> run) {
    cases.push_back({kernel, std::string(name(dtype)), shape, elements, mix, exps, std::move(run)});
  }
};

}  // namespace

CaseGroup norm_cases(DType dtype) {
  Group group(dtype, rows, hidden);
  const auto x = filled(dtype, {rows, hidden});
  const auto y = filled(dtype, {rows, hidden});
  const auto dx = filled(dtype, {rows, hidden});
  const auto weight = filled(dtype, {hidden});
  const auto mean = filled(DType::f32, {rows});
  const auto rstd = filled(DType::f32, {rows});
  const auto dweight = filled(DType::f32, {hidden});
  const auto dbias = filled(DType::f32, {hidden});
  const int size = group.size;
  const Mix forward = mix_of_size<1, 0, 1>(size);
  const Mix backward = mix_of_size<2, 1, 0>(size);
  group.add("layer_norm", forward, 0,
            [=] { kernels::layer_norm(*x, *weight, *weight, *y, *mean, *rstd, 1e-5F, {}); });
  group.add("layer_norm_backward", backward, 0, [=] {
    kernels::layer_norm_backward(*y, *x, *weight, *mean, *rstd, *dx, *dweight, *dbias, {});
  });
  group.add("rms_norm", forward, 0, [=] { kernels::rms_norm(*x, *weight, *y, *rstd, 1e-5F, {}); });
  group.add("rms_norm_backward", backward, 0,
            [=] { kernels::rms_norm_backward(*y, *x, *weight, *rstd, *dx, *dweight, {}); });
  return group.cases;
}

CaseGroup activation_cases(DType dtype) {
  Group group(dtype, ffn_rows, ffn);
  const auto x = filled(dtype, {ffn_rows, ffn});
  const auto y = filled(dtype, {ffn_rows, ffn});
  const auto z = filled(dtype, {ffn_rows, ffn});
  const auto gate_up = filled(dtype, {ffn_rows, 2 * ffn});
  const auto dgate_up = filled(dtype, {ffn_rows, 2 * ffn});
  const int size = group.size;
  group.add("gelu", mix_of_size<1, 0, 1>(size), 1,
            [=] { kernels::activate(kernels::Activation::gelu_tanh, *x, *y, {}); });
  group.add("gelu_backward", mix_of_size<2, 0, 1>(size), 1,
            [=] { kernels::activate_backward(kernels::Activation::gelu_tanh, *y, *x, *z, {}); });
  group.add("swiglu", mix_of_size<2, 0, 1>(size), 1,
            [=] { kernels::activate_gated(kernels::Activation::silu, *gate_up, *y, {}); });
  group.add("swiglu_backward", mix_of_size<3, 0, 2>(size), 1, [=] {
    kernels::activate_gated_backward(kernels::Activation::silu, *x, *gate_up, *dgate_up, {});
  });
  group.add("add", mix_of_size<2, 0, 1>(size), 0, [=] { kernels::add(*x, *y, *z, {}); });
  return group.cases;
}

CaseGroup dropout_cases(DType dtype) {
  Group group(dtype, rows, hidden);
  const auto x = filled(dtype, {rows, hidden});
  const auto residual = filled(dtype, {rows, hidden});
  const auto y = filled(dtype, {rows, hidden});
  const auto sample = std::make_shared<device::Tensor>(DType::i64, Shape{rows});
  const auto position = filled(DType::i32, {rows});
  const kernels::DropoutSite site{.probability = 0.1F};
  const int size = group.size;
  group.add("dropout_add (Philox binds)", mix_of_size<2, 0, 1>(size), 0,
            [=] { kernels::dropout_add(site, *x, *residual, *sample, *position, *y, {}); });
  return group.cases;
}

CaseGroup embedding_cases(DType dtype) {
  Group group(dtype, rows, hidden);
  const auto token = filled(DType::i32, {rows});
  const auto weight = filled(dtype, {vocabulary, hidden});
  const auto y = filled(dtype, {rows, hidden});
  const auto dweight = filled(DType::f32, {vocabulary, hidden});
  const int size = group.size;
  group.add("embedding", mix_of_size<1, 0, 1>(size), 0,
            [=] { kernels::embedding(*token, *weight, 0, {}, {}, *y, {}); });
  group.add("embedding_backward",
            dtype == DType::f32 ? mix_of<Word, 1, Word, 1, Word, 0>()
                                : mix_of<Half, 1, Word, 1, Word, 0>(),
            0, [=] { kernels::embedding_backward(*token, *y, 0, *dweight, {}, {}, {}); });
  return group.cases;
}

CaseGroup cross_entropy_cases(DType dtype) {
  Group group(dtype, tokens, padded_vocabulary);
  const auto logits = filled(dtype, {tokens, padded_vocabulary});
  const auto target = filled(DType::i32, {tokens});
  const auto loss = filled(DType::f32, {tokens});
  const int size = group.size;
  group.add("cross_entropy", mix_of_size<1, 0, 0>(size), 1,
            [=] { kernels::cross_entropy(*logits, *target, *loss, vocabulary, {}); });
  group.add("cross_entropy_forward_backward", mix_of_size<0, 1, 0>(size), 1, [=] {
    kernels::cross_entropy_forward_backward(*logits, *target, *loss, vocabulary, 1.0F, {});
  });
  return group.cases;
}

CaseGroup optimizer_cases(DType dtype) {
  Group group(dtype, parameters, 1);
  const auto master = filled(DType::f32, {parameters});
  const auto exp_avg = filled(DType::f32, {parameters}, 0.1F);
  const auto exp_avg_sq = std::make_shared<device::Tensor>(DType::f32, Shape{parameters});
  const auto gradient = filled(DType::f32, {parameters});
  const auto weight = filled(dtype, {parameters});
  const auto total = std::make_shared<device::Tensor>(DType::f64, Shape{1});
  // With f32 storage master itself is the weight.
  const TensorView copy = dtype == DType::f32 ? TensorView() : weight->view();
  group.add("adam",
            dtype == DType::f32 ? mix_of<Word, 1, Word, 3, Half, 0>()
                                : mix_of<Word, 1, Word, 3, Half, 1>(),
            0, [=, keep = weight] {
              kernels::adam({.lr = 1e-4F, .weight_decay = 0.1F, .step = 10}, *master, *exp_avg,
                            *exp_avg_sq, *gradient, copy, {});
            });
  group.add("sgd",
            dtype == DType::f32 ? mix_of<Word, 1, Word, 2, Half, 0>()
                                : mix_of<Word, 1, Word, 2, Half, 1>(),
            0, [=, keep = weight] {
              kernels::sgd({.lr = 1e-4F, .momentum = 0.9F}, *master, *exp_avg, *gradient, copy, {});
            });
  if (dtype == DType::f32) {
    group.add("sum_of_squares", mix_of_size<1, 0, 0>(4), 0,
              [=] { kernels::sum_of_squares(*gradient, *total, false, {}); });
  }
  return group.cases;
}

CaseGroup cast_cases(DType dtype) {
  Group group(dtype, parameters, 1);
  const auto x = filled(dtype, {parameters});
  const auto other = filled(dtype == DType::f32 ? DType::bf16 : DType::f32, {parameters});
  group.add(dtype == DType::f32 ? "cast to bf16" : "cast to f32",
            dtype == DType::f32 ? mix_of<Word, 1, Word, 0, Half, 1>()
                                : mix_of<Half, 1, Half, 0, Word, 1>(),
            0, [=] { kernels::cast(*x, *other, {}); });
  return group.cases;
}

}  // namespace fourfold::benchmarks
