// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_traces.hpp"
#include "run/tiny_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using test::MeshTrace;
using train::MeshComparison;

namespace {

/// Two tensors, one step of plain SGD.
MeshTrace small_trace() {
  MeshTrace trace;
  trace.optim.name = runfile::OptimizerKind::sgd;
  trace.optim.schedule = {.kind = runfile::ScheduleKind::constant, .lr = 0.5};
  trace.optim.momentum = 0;
  trace.optim.weight_decay = 0;
  trace.optim.clip_norm = 0;
  trace.table = {{.name = "first", .shape = {2, 3}}, {.name = "second", .shape = {2}}};
  trace.initial_weights = {{1, 2, 3, 4, 5, 6}, {7, 8}};
  trace.steps = {train::StepTrace{{.loss = 2, .grad_norm = 5},
                                  {{3, 0, 0, 0, 4, 0}, {1, -1}},
                                  {{-0.5F, 2, 3, 4, 3, 6}, {6.5F, 8.5F}}}};
  return trace;
}

MeshComparison against_reference(const MeshTrace& other) {
  return test::compare(small_trace(), other, {});
}

}  // namespace

TEST_CASE("equal traces pass with errors of zero", "[mesh_comparer]") {
  const MeshComparison result = against_reference(small_trace());
  CHECK(result.passed());
  CHECK(result.same_initial_weights);
  CHECK(result.ranks_agree);
  CHECK(result.largest.loss == 0);
  CHECK(result.largest.gradient == 0);
  CHECK(result.largest.weight == 0);
}

TEST_CASE("a step that both meshes skip has no gradients to compare", "[mesh_comparer]") {
  MeshTrace reference = small_trace();
  reference.steps[0].status = train::StepStatus::skipped;
  reference.steps[0].grad_norm = INFINITY;
  reference.steps[0].gradients = {{INFINITY, 0, 0, 0, 4, 0}, {1, -1}};
  reference.steps[0].weights = reference.initial_weights;
  MeshTrace other = reference;
  other.steps[0].grad_norm = std::nan("");
  other.steps[0].gradients[0][1] = std::numeric_limits<float>::quiet_NaN();
  CHECK(test::compare(reference, other, {}).passed());
  other.steps[0].weights[1][0] = 5;
  CHECK_THAT(test::compare(reference, other, {}).first_difference.value(),
             ContainsSubstring("the weight of second is off"));
  CHECK_THAT(test::compare(reference, small_trace(), {}).first_difference.value(),
             ContainsSubstring("step 1: applied instead of skipped"));
  other = reference;
  other.steps[0].status = reference.steps[0].status = train::StepStatus::lost;
  CHECK_FALSE(test::compare(reference, other, {}).passed());
}

TEST_CASE("each kind of difference is found and named", "[mesh_comparer]") {
  MeshTrace other = small_trace();
  SECTION("one bit of an initial weight") {
    other.initial_weights[1][1] = std::nextafter(8.0F, 9.0F);
    const MeshComparison result = against_reference(other);
    CHECK_FALSE(result.same_initial_weights);
    CHECK(result.first_difference == "the initial bits of second differ");
  }
  SECTION("the loss") {
    other.steps[0].loss = 2.0001;
    const MeshComparison result = against_reference(other);
    CHECK_THAT(result.largest.loss, WithinRel(5e-5, 1e-9));
    CHECK_THAT(result.first_difference.value(), ContainsSubstring("step 1: the loss is 2.0001"));
  }
  SECTION("a gradient: |b - a| / |a|, and the element that is furthest off") {
    other.steps[0].gradients[0] = {3, 0, 0, 0, 4, 0.01F};
    const MeshComparison result = against_reference(other);
    CHECK_THAT(result.largest.gradient, WithinRel(0.002, 1e-6));
    CHECK_THAT(result.first_difference.value(),
               ContainsSubstring("step 1: the gradient of first differs by 2.0e-03"));
    CHECK_THAT(result.first_difference.value(), ContainsSubstring("most at [1, 2]"));
  }
  SECTION("two gradients: the one nearer to the loss comes first") {
    other.steps[0].gradients[0][0] = 4;
    other.steps[0].gradients[1][0] = 2;
    CHECK_THAT(against_reference(other).first_difference.value(),
               ContainsSubstring("the gradient of second"));
  }
  SECTION("the gradient norm") {
    other.steps[0].grad_norm = 5.01;
    CHECK_THAT(against_reference(other).first_difference.value(),
               ContainsSubstring("the gradient norm is 5.01 instead of 5"));
  }
  SECTION("a weight: |b - expected| / |expected - before|") {
    other.steps[0].weights[1] = {6.5F, 8.51F};
    const MeshComparison result = against_reference(other);
    CHECK_THAT(result.largest.weight, WithinRel(0.01 / std::sqrt(0.5), 1e-3));
    CHECK_THAT(result.first_difference.value(),
               ContainsSubstring("step 1: the weight of second is off by 1.4e-02 of the update") &&
                   ContainsSubstring("most at [1]: 8.51") && ContainsSubstring("instead of 8.5"));
  }
  SECTION("nan is not equal to anything") {
    other.steps[0].gradients[0][1] = std::numeric_limits<float>::quiet_NaN();
    CHECK(std::isinf(against_reference(other).largest.gradient));
    CHECK_FALSE(against_reference(other).passed());
  }
  SECTION("ranks that disagree among themselves") {
    other.disagreements = {"ranks 0 and 1 hold different bits"};
    const MeshComparison result = against_reference(other);
    CHECK_FALSE(result.ranks_agree);
    CHECK(result.first_difference == "ranks 0 and 1 hold different bits");
  }
}

namespace {

/// The step of small_trace() with other gradients of its first tensor, in units of a rounding of 1
/// in each element of it.
MeshComparison in_units_of_rounding(const std::vector<float>& first, double tolerance) {
  const MeshTrace reference = small_trace();
  train::StepTrace other = reference.steps[0];
  other.gradients[0] = first;
  train::ParameterValues rounded = reference.steps[0].gradients;
  for (std::vector<float>& values : rounded) {
    for (float& value : values) {
      value += 1;
    }
  }
  train::MeshComparer comparer(reference.optim, reference.table,
                               {.loss = 1, .gradient = 1e9, .rounding = tolerance, .weight = 1e9});
  comparer.compare_step({reference.initial_weights, {}}, reference.steps[0], other, &rounded);
  return comparer.finish({});
}

}  // namespace

TEST_CASE("tensors, rows and columns are compared in units of rounding", "[mesh_comparer]") {
  // The share of all gradients is 8 / 27, and so that of this tensor's 25 no less than 7.4: a
  // column's is 2 and the average 7.4 / 3, or 8 / 27 of the 9 in the first.
  const MeshComparison column = in_units_of_rounding({3, 0, 8, 0, 4, 8}, 5);
  CHECK_THAT(column.largest.rounding, WithinRel(std::sqrt(128.0 / (2 + 25 * 8.0 / 27 / 3)), 1e-6));
  CHECK_THAT(
      column.first_difference.value(),
      ContainsSubstring("step 1: column 2 of the gradient of first differs by 5.4 times what "
                        "rounding makes there"));
  CHECK(column.differing_steps == std::vector<std::int64_t>{1});
  const MeshComparison whole = in_units_of_rounding({6, 3, 3, 3, 7, 3}, 2.6);
  CHECK_THAT(whole.largest.rounding, WithinRel(std::sqrt(54 / (25 * 8.0 / 27)), 1e-6));
  CHECK_THAT(whole.first_difference.value(), ContainsSubstring("step 1: the gradient of first"));
  CHECK(in_units_of_rounding({6, 3, 3, 3, 7, 3}, 2.8).passed());
  CHECK(std::isinf(in_units_of_rounding({std::nanf(""), 0, 0, 0, 4, 0}, 1).largest.rounding));
}

TEST_CASE("a tensor that rounds alike by chance is held against the others", "[mesh_comparer]") {
  const MeshTrace reference = small_trace();
  train::StepTrace other = reference.steps[0];
  train::ParameterValues rounded = reference.steps[0].gradients;
  rounded[0][0] += 1e-6F;  // and nothing in the second tensor
  const auto error_of = [&](float off) {
    other.gradients[1][0] = reference.steps[0].gradients[1][0] + off;
    train::MeshComparer comparer(reference.optim, reference.table,
                                 {.loss = 1, .gradient = 1, .rounding = 30, .weight = 1e9});
    comparer.compare_step({reference.initial_weights, {}}, reference.steps[0], other, &rounded);
    return comparer.finish({});
  };
  CHECK(error_of(1.2e-7F).passed());
  CHECK_FALSE(error_of(1e-3F).passed());
}

TEST_CASE("a gradient that all but cancels is held against what rounding makes of it",
          "[mesh_comparer]") {
  MeshTrace reference = small_trace();
  reference.steps[0].gradients[1] = {1.5F, -1.5F};  // sums of thousands
  reference.steps[0].weights[1] = {7, 8};
  train::ParameterValues rounded = reference.steps[0].gradients;
  rounded[0][0] += 1e-6F;
  rounded[1][0] += 1e-4F;
  const auto off_by = [&](float off, const train::Tolerances& tolerances) {
    train::StepTrace other = reference.steps[0];
    other.gradients[1][0] += off;
    train::MeshComparer comparer(reference.optim, reference.table, tolerances);
    comparer.compare_step({reference.initial_weights, {}}, reference.steps[0], other, &rounded);
    return comparer.finish({});
  };
  train::Tolerances tolerances;
  tolerances.weight = 1e9;
  CHECK(off_by(1e-3F, tolerances).first_difference.value_or("") == "");  // 5e-4 of its norm
  CHECK_THAT(off_by(4e-2F, tolerances).first_difference.value_or(""),
             ContainsSubstring("the gradient of second"));
  // So is the norm of all of them.
  const auto norm_of = [&](double norm) {
    train::StepTrace other = reference.steps[0];
    other.grad_norm = norm;
    train::MeshComparer comparer(reference.optim, reference.table, tolerances);
    comparer.compare_step({reference.initial_weights, {}}, reference.steps[0], other, &rounded);
    return comparer.finish({});
  };
  CHECK(norm_of(5.01).first_difference.value_or("") == "");  // 2e-3 of it
  CHECK_THAT(norm_of(5.1).first_difference.value_or(""), ContainsSubstring("the gradient norm is"));
  // In 16 bits a tensor's own norm decides.
  tolerances.gradient = 1e-4;
  tolerances.least_gradient = 30;
  CHECK_THAT(off_by(1e-3F, tolerances).first_difference.value_or(""),
             ContainsSubstring("of its norm"));
}

TEST_CASE("a gradient of rounding noise is held against the others", "[mesh_comparer]") {
  MeshTrace reference = small_trace();
  reference.steps[0].gradients[1] = {1e-9F, -1e-9F};
  reference.steps[0].weights[1] = {7, 8};
  MeshTrace other = reference;
  other.steps[0].gradients[1] = {-2e-9F, 1e-9F};
  CHECK(test::compare(reference, other, {}).passed());
  other.steps[0].gradients[1] = {1e-3F, 0};  // no noise any more
  CHECK_FALSE(test::compare(reference, other, {}).passed());
}

TEST_CASE("an update of rounding noise is right when it is that of its own noise",
          "[mesh_comparer]") {
  MeshTrace reference = small_trace();
  reference.optim.name = runfile::OptimizerKind::adamw;
  reference.optim.epsilon = 1e-20;
  reference.steps[0].gradients = {{3, -3, 1, -1, 4, -4}, {1e-9F, -1e-9F}};
  reference.steps[0].weights = {{0.5F, 2.5F, 2.5F, 4.5F, 4.5F, 6.5F}, {6.5F, 8.5F}};
  CHECK(test::compare(reference, reference, {}).first_difference.value_or("") == "");
  MeshTrace other = reference;
  other.steps[0].gradients[1] = {-2e-9F, 1e-9F};
  CHECK_FALSE(test::compare(reference, other, {}).passed());  // the reference's weights
  other.steps[0].weights[1] = {7.5F, 7.5F};
  CHECK(test::compare(reference, other, {}).first_difference.value_or("") == "");
}

TEST_CASE("meshes of one run pass, another seed does not", "[mesh_comparer]") {
  const test::TinyRun tiny("gpt2");
  const auto trace = [&](comm::MeshShape mesh, const std::string& change) {
    return test::trace_mesh(
        tiny.config(5, "none", {"optim.lr=1e-3", "optim.warmup_steps=0", change}).config, mesh, 5);
  };
  const MeshTrace one = trace({}, "mesh.tp=1");
  CHECK(one.steps.size() == 5);
  CHECK(one.steps[4].loss < one.steps[0].loss);
  CHECK(test::compare(one, trace({.dp = 2, .tp = 2}, "mesh.tp=2"), {}).passed());
  const MeshComparison other = test::compare(one, trace({}, "train.seed=8"), {});
  CHECK_FALSE(other.same_initial_weights);
  CHECK(other.largest.loss > 1e-3);
}

TEST_CASE("an update that goes wrong shows in the weights before anything else",
          "[mesh_comparer]") {
  const test::TinyRun tiny("llama");
  const std::string optimizer = GENERATE("adamw", "adam", "sgd");
  const std::string lr = optimizer == "sgd" ? "0.5" : "1e-3";
  const std::string other_lr = optimizer == "sgd" ? "0.5005" : "1.001e-3";
  const auto trace = [&](const std::string& change) {
    return test::trace_mesh(tiny.config(3, "none",
                                        {"optim.name=" + optimizer, "optim.lr=" + lr,
                                         "optim.warmup_steps=0", "optim.clip_norm=0.1", change})
                                .config,
                            {}, 3);
  };
  const MeshTrace one = trace("mesh.tp=1");
  CHECK(test::compare(one, one, {}).largest.weight < 1e-5);
  for (const std::string& change : {std::string("optim.weight_decay=0"), "optim.lr=" + other_lr,
                                    std::string("optim.warmup_steps=2")}) {
    CAPTURE(optimizer, change);
    const MeshComparison result = test::compare(one, trace(change), {});
    CHECK(result.same_initial_weights);
    CHECK_THAT(result.first_difference.value_or(""),
               ContainsSubstring("step 1: the weight of ") && ContainsSubstring("of the update"));
  }
  MeshTrace wrong = one;
  SECTION("made twice") {
    for (std::size_t tensor = 0; tensor < one.table.size(); ++tensor) {
      for (std::size_t i = 0; i < one.initial_weights[tensor].size(); ++i) {
        const float before = one.initial_weights[tensor][i];
        wrong.steps[0].weights[tensor][i] += one.steps[0].weights[tensor][i] - before;
      }
    }
    CHECK_THAT(test::compare(one, wrong, {}).first_difference.value_or(""),
               ContainsSubstring("step 1: the weight of "));
  }
  SECTION("not made by the rank that holds half of a matrix") {
    std::ranges::copy_n(one.steps[0].weights[1].begin(), std::ssize(one.steps[0].weights[1]) / 2,
                        wrong.steps[1].weights[1].begin());
    CHECK_THAT(test::compare(one, wrong, {}).first_difference.value_or(""),
               ContainsSubstring("step 2: the weight of " + one.table[1].name));
  }
  SECTION("lost by one element") {
    const std::size_t last = one.table.size() - 1;
    wrong.steps[2].weights[last][3] = one.steps[1].weights[last][3];
    CHECK_THAT(test::compare(one, wrong, {}).first_difference.value_or(""),
               ContainsSubstring("step 3: the weight of " + one.table[last].name) &&
                   ContainsSubstring("most at ["));
  }
}
