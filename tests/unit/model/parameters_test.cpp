// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"
#include "small_models.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using fourfold::Box;
using fourfold::DType;
using fourfold::Shape;
using fourfold::device::Arena;
using fourfold::device::MemoryUse;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::Parameter;
using fourfold::model::Parameters;
using fourfold::model::ParameterSpec;
using fourfold::model::Segment;
using fourfold::model_test::small;

namespace model = fourfold::model;

namespace {

/// The boxes of one of two ranks that cut every tensor in the middle of `dim` (vectors in dim 0).
std::vector<Box> halves(const std::vector<ParameterSpec>& table, std::size_t dim, int which) {
  std::vector<Box> boxes;
  for (const ParameterSpec& spec : table) {
    Box box = Box::whole(spec.shape);
    const std::size_t cut = std::min(dim, spec.shape.rank() - 1);
    const fourfold::Range part = fourfold::even_part(spec.shape[cut], 2, which);
    box.offset[cut] = part.begin;
    box.extent[cut] = part.count;
    boxes.push_back(box);
  }
  return boxes;
}

}  // namespace

TEST_CASE("q, k, v and gate, up lie one after the other, with their biases", "[parameters]") {
  Architecture config = small(Family::llama);
  config.hidden = 23;  // no multiple of the alignment
  config.attention.head_dim = 6;
  config.attention.qkv_bias = true;
  fourfold::harness::SharedArena arena;
  const Parameters parameters(model::parameter_table(config), DType::f32, arena);
  for (const std::string part : {"weight", "bias"}) {
    const Parameter& q = parameters.at("layers.1.attn.q_proj." + part);
    const Parameter& k = parameters.at("layers.1.attn.k_proj." + part);
    const Parameter& v = parameters.at("layers.1.attn.v_proj." + part);
    CHECK(k.flat.begin == q.flat.end());
    CHECK(v.flat.begin == k.flat.end());
    CHECK(static_cast<float*>(v.weight.data()) ==
          static_cast<float*>(q.weight.data()) + q.flat.count + k.flat.count);
    CHECK(static_cast<float*>(v.gradient.data()) ==
          static_cast<float*>(q.gradient.data()) + q.flat.count + k.flat.count);
  }
  CHECK(parameters.at("layers.0.mlp.up_proj.weight").flat.begin ==
        parameters.at("layers.0.mlp.gate_proj.weight").flat.end());
  CHECK(parameters.find("layers.9.mlp.up_proj.weight") == nullptr);
}

TEST_CASE("flat memory covers every parameter once: matrices unit by unit, then all vectors",
          "[parameters]") {
  for (const Family family : {Family::gpt2, Family::llama}) {
    const Architecture config = small(family, 0, false);
    fourfold::harness::SharedArena arena;
    const Parameters parameters(model::parameter_table(config), DType::f32, arena);
    std::vector<int> owners(static_cast<std::size_t>(parameters.weights().elements()), 0);
    std::int64_t next = 0;
    int unit = 0;
    for (const Segment& segment : parameters.layout().segments) {
      CHECK(segment.flat.begin == next);
      CHECK(segment.flat.count > 0);
      next = segment.flat.end();
      CHECK(segment.has_vectors() == !segment.decay);
      CHECK((segment.unit >= unit || next == parameters.layout().elements));
      unit = segment.unit;
      for (const Parameter& parameter : parameters) {
        if (segment.flat.begin <= parameter.flat.begin && parameter.flat.end() <= next) {
          CHECK((segment.unit == parameter.spec.unit || segment.has_vectors()));
          CHECK(parameter.spec.decay == segment.decay);
        }
      }
    }
    CHECK(next == parameters.weights().elements());
    CHECK(parameters.layout().matrices(0) ==
          fourfold::Range{0, parameters.layout().matrices(1).begin});
    for (const Parameter& parameter : parameters) {
      CHECK((parameter.spec.fused_with_previous || parameter.flat.begin % 16 == 0));
      for (std::int64_t i = parameter.flat.begin; i < parameter.flat.end(); ++i) {
        ++owners[static_cast<std::size_t>(i)];
      }
    }
    CHECK(std::count(owners.begin(), owners.end(), 1) == model::parameter_count(config));
    CHECK(std::count(owners.begin(), owners.end(), 0) ==
          parameters.weights().elements() - model::parameter_count(config));
  }
}

TEMPLATE_TEST_CASE("masters are the weights for f32 and rounded to them for 16 bits",
                   "[parameters]", fourfold::BFloat16, fourfold::Float16) {
  const Architecture config = small(Family::gpt2);
  const auto table = model::parameter_table(config);
  fourfold::harness::SharedArena arena32;
  const Parameters f32(table, DType::f32, arena32);
  CHECK(f32.masters().data() == f32.weights().data());
  fourfold::harness::SharedArena arena16;
  const Parameters narrow(table, fourfold::dtype_of<TestType>, arena16);
  model::initialise(narrow, 3, {});
  const auto elements = static_cast<std::size_t>(narrow.weights().elements());
  CHECK(model::flat_layout(table, model::whole_boxes(table)).elements ==
        narrow.weights().elements());
  CHECK(arena16.bytes(MemoryUse::weights) == 2 * elements);
  CHECK(arena16.bytes(MemoryUse::optimizer) == 4 * elements);
  CHECK(arena16.bytes(MemoryUse::gradients) == 4 * elements);
  bool rounded = true;
  for (std::size_t i = 0; i < elements; ++i) {
    rounded =
        rounded && narrow.weights().as<TestType>()[i] == TestType(narrow.masters().as<float>()[i]);
  }
  CHECK(rounded);
}

TEST_CASE("initial weights follow their formula", "[parameters]") {
  Architecture config = small(Family::llama, 0, false);
  config.hidden = 300;
  config.vocab = 200;
  fourfold::harness::SharedArena arena;
  const Parameters parameters(model::parameter_table(config), DType::f32, arena);
  model::initialise(parameters, 42, {});
  const std::string name = "layers.1.mlp.down_proj.weight";
  const Parameter& down = parameters.at(name);
  const auto key = fourfold::philox_key(42, fourfold::RandomUse::initial_weight,
                                        fourfold::name_salt(name.data(), name.size()));
  for (const std::int64_t i : {0, 1, 36, 37, 1000}) {
    CHECK(down.master.as<float>()[i] ==
          down.spec.init_std * fourfold::normal_float(key, static_cast<std::uint64_t>(i)));
  }
  const Parameter& head = parameters.at("lm_head.weight");
  double sum = 0;
  double squares = 0;
  for (std::int64_t i = 0; i < head.flat.count; ++i) {
    sum += head.master.as<float>()[i];
    squares += std::pow(head.master.as<float>()[i], 2);
  }
  const auto count = static_cast<double>(head.flat.count);
  CHECK_THAT(sum / count, WithinAbs(0, 3 * 0.02 / std::sqrt(count)));
  CHECK_THAT(std::sqrt(squares / count), WithinRel(0.02, 0.02));
  CHECK(parameters.at("final_norm.weight").master.as<float>()[7] == 1.0F);
}

TEST_CASE("initial weights follow their formula where several cores draw them", "[parameters]") {
  const model::ParameterSpec spec{.name = "wide", .shape = {301, 700}, .init_std = 0.5F};
  for (const Box& box : {Box::whole(spec.shape), Box{{7, 90}, {294, 511}}, Box{{300, 0}, {1, 700}},
                         Box{{0, 0}, {0, 700}}}) {
    fourfold::harness::SharedArena arena;
    const fourfold::TensorView values = arena.take(fourfold::device::MemoryUse::weights, DType::f32,
                                                   fourfold::Shape{box.elements()});
    model::draw_initial(spec, box, 42, values, {});
    const auto key = fourfold::philox_key(42, fourfold::RandomUse::initial_weight,
                                          fourfold::name_salt(spec.name.data(), spec.name.size()));
    std::int64_t wrong = 0;
    std::int64_t at = 0;
    for (std::int64_t row = box.offset[0]; row < box.offset[0] + box.extent[0]; ++row) {
      for (std::int64_t column = 0; column < box.extent[1]; ++column, ++at) {
        const auto element = static_cast<std::uint64_t>(row * 700 + box.offset[1] + column);
        wrong += values.as<float>()[at] == 0.5F * fourfold::normal_float(key, element) ? 0 : 1;
      }
    }
    CHECK(at == box.elements());
    CHECK(wrong == 0);
  }
}

TEST_CASE("a part of a parameter starts with the bits of the whole", "[parameters]") {
  for (const Family family : {Family::gpt2, Family::llama}) {
    const auto table = model::parameter_table(small(family, 0, false));
    fourfold::harness::SharedArena arena;
    const Parameters whole(table, DType::f32, arena);
    model::initialise(whole, 9, {});
    for (const std::size_t dim : {std::size_t{0}, std::size_t{1}}) {
      for (const int which : {0, 1}) {
        fourfold::harness::SharedArena part_arena;
        const Parameters part(table, halves(table, dim, which), DType::f32, part_arena);
        model::initialise(part, 9, {});
        for (const Parameter& held : part) {
          const Parameter& source = whole.at(held.spec.name);
          bool same = true;
          fourfold::for_each_run(source.box, held.box, held.box, [&](const fourfold::Run& run) {
            same = same && std::equal(held.master.as<float>() + run.target_element,
                                      held.master.as<float>() + run.target_element + run.elements,
                                      source.master.as<float>() + run.source_element);
          });
          CAPTURE(held.spec.name, dim, which);
          CHECK(same);
        }
      }
    }
  }
}

TEST_CASE("another seed draws other weights; gradients can be cleared", "[parameters]") {
  fourfold::harness::SharedArena arena;
  const auto table = model::parameter_table(small(Family::gpt2));
  const Parameters a(table, DType::f32, arena);
  const Parameters b(table, DType::f32, arena);
  model::initialise(a, 1, {});
  model::initialise(b, 2, {});
  CHECK(a.weights().as<float>()[0] != b.weights().as<float>()[0]);
  std::fill_n(a.gradients().as<float>(), a.gradients().elements(), 1.0F);
  a.zero_gradients({});
  CHECK(std::all_of(a.gradients().as<float>(), a.gradients().as<float>() + a.gradients().elements(),
                    [](float value) { return value == 0.0F; }));
}
