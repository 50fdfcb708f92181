// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "small_architecture.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/io/tensor_source.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <map>
#include <string>
#include <vector>

namespace fourfold::harness {

inline model::Architecture gpt2_model() {
  return model_test::small_model({.hidden = 30, .heads = 5, .ffn = 0, .vocab = 131, .context = 11});
}

inline model::Architecture llama_model() {
  return model_test::small_model({.family = model::Family::llama,
                                  .layers = 2,
                                  .hidden = 30,
                                  .kv_heads = 2,
                                  .head_dim = 4,
                                  .vocab = 131,
                                  .context = 11,
                                  .tied = false});
}

/// Weights that tell apart every element of every parameter.
class CountedWeights final : public io::TensorSource {
 public:
  explicit CountedWeights(const model::Architecture& config) {
    float next = 1;
    for (const model::ParameterSpec& spec : model::parameter_table(config)) {
      std::vector<float>& values = values_[spec.name];
      shapes_.emplace(spec.name, spec.shape);
      for (std::int64_t i = 0; i < spec.shape.elements(); ++i) {
        values.push_back(next++);
      }
    }
  }
  std::vector<float>& of(const std::string& name) { return values_.at(name); }

  void read(const io::TensorId& id, const Box& box, TensorView target) override {
    const std::vector<float>& values = values_.at(id.name);
    const Box whole = Box::whole(shapes_.at(id.name));
    for_each_run(whole, box, box, [&](const Run& run) {
      std::copy_n(values.begin() + run.source_element, run.elements,
                  target.as<float>() + run.target_element);
    });
  }

 private:
  std::map<std::string, std::vector<float>> values_;
  std::map<std::string, Shape> shapes_;
};

inline std::vector<float> read_box(io::TensorSource& source, const std::string& name,
                                   const Box& box) {
  std::vector<float> values(static_cast<std::size_t>(box.elements()), -1.0F);
  source.read({name, io::TensorState::master}, box, {values.data(), box.extent});
  return values;
}

inline std::vector<float> read_whole(io::TensorSource& source, const model::ParameterSpec& spec) {
  return read_box(source, spec.name, Box::whole(spec.shape));
}

}  // namespace fourfold::harness
