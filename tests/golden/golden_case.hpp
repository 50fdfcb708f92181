// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What make_goldens.py wrote about one model.
#pragma once

#include <fourfold/base/shape.hpp>
#include <fourfold/model/architecture.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::golden {

struct GoldenTensor {
  std::string kind;  ///< "logits", "gradient" (both of the first step), "final_weight"
  std::string name;
  Shape shape;
  std::vector<float> values;
};

struct GoldenCase {
  model::Architecture config;  ///< resolved
  std::uint64_t seed = 0;
  std::int64_t sequences = 0;
  std::int64_t tokens = 0;
  double lr = 0, beta1 = 0, beta2 = 0, epsilon = 0, weight_decay = 0, clip = 0;
  std::vector<std::vector<std::int32_t>> token;   ///< per step
  std::vector<std::vector<std::int32_t>> target;  ///< per step
  std::vector<double> loss;                       ///< per step
  std::vector<double> gradient_norm;              ///< per step, before clipping
  std::vector<std::uint32_t> normal_bits;  ///< first numbers of embedding.token.weight's stream
  std::vector<GoldenTensor> tensors;

  const GoldenTensor& tensor(const std::string& kind, const std::string& name) const;
};

/// Reads <folder>/<name>.json and <name>.f32. @throws std::runtime_error naming the file
GoldenCase read_golden_case(const std::string& folder, const std::string& name);

}  // namespace fourfold::golden
