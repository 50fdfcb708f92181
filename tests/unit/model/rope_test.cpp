// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cmath>
#include <utility>
#include <vector>

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using fourfold::model::Architecture;
using fourfold::model::RopeScaling;

namespace model = fourfold::model;

TEST_CASE("Llama-3.1 frequencies are those of transformers", "[rope]") {
  // LlamaRotaryEmbedding.inv_freq of transformers 5.23.0 (f32), picked from all three ranges.
  const auto frequencies = model::rotary_frequencies(model::preset("llama-3.1-8b").positions, 128);
  REQUIRE(frequencies.size() == 64);
  const std::vector<std::pair<std::size_t, double>> expected{{0, 1.0},
                                                             {1, 0.8146172165870667},
                                                             {20, 0.016560440883040428},
                                                             {28, 0.0032114461064338684},
                                                             {29, 0.0021665706299245358},
                                                             {30, 0.0013718936825171113},
                                                             {31, 0.0008567514596506953},
                                                             {32, 0.0005248460220173001},
                                                             {33, 0.0003126936499029398},
                                                             {34, 0.0001785077911335975},
                                                             {36, 7.784655463183299e-05},
                                                             {63, 3.068925877869333e-07}};
  for (const auto& [index, value] : expected) {
    CAPTURE(index);
    CHECK_THAT(frequencies[index], WithinRel(value, 1e-6));
  }
}

TEST_CASE("linear scaling divides every frequency", "[rope]") {
  Architecture config = model::preset("llama-15m");
  config.positions.rope_scaling = {RopeScaling::Kind::linear, 2.5, 1, 4, 1};
  const auto frequencies = model::rotary_frequencies(config.positions, 16);
  // transformers 5.23.0, rope_type linear, factor 2.5, theta 1e4.
  const std::vector<double> expected{0.4,   0.12649110,   0.04,   0.012649111,
                                     0.004, 0.0012649111, 0.0004, 0.00012649111};
  REQUIRE(frequencies.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK_THAT(frequencies[i], WithinRel(expected[i], 1e-6));
  }
}

TEST_CASE("the table holds cosines, then sines, of every position", "[rope]") {
  const model::PositionTraits positions = model::preset("llama-15m").positions;
  const auto table = model::rotary_table(positions, 300, 48);
  const auto frequencies = model::rotary_frequencies(positions, 48);
  REQUIRE(table.size() == 300 * 48);
  for (const std::size_t position : {0U, 1U, 7U, 299U}) {
    for (const std::size_t i : {0U, 5U, 23U}) {
      const double angle = static_cast<double>(position) * frequencies[i];
      CHECK_THAT(table[position * 48 + i], WithinAbs(std::cos(angle), 1e-7));
      CHECK_THAT(table[position * 48 + 24 + i], WithinAbs(std::sin(angle), 1e-7));
    }
  }
}
