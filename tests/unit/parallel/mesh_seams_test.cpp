// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/arena.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/parallel/mesh_seams.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using harness::Findings;
using harness::on_ranks;

/// Whole numbers, so that sums over ranks are exact.
float addend(int rank, std::int64_t element) {
  return static_cast<float>((element % 11) * (rank + 1) - element % 5);
}

TEST_CASE("the seams sum a model's gradients in the last micro-batch only", "[mesh_seams]") {
  on_ranks([](Communicator& world, Findings& findings) {
    model::ModelConfig config = model::preset("gpt2-124m");
    config.layers = 3;
    config.hidden = 24;
    config.heads = 3;
    config.kv_heads = 3;
    config.head_dim = 8;
    config.ffn = 40;
    config.vocab = 67;
    config.context = 16;
    device::Arena arena;
    const model::Parameters parameters(model::parameter_table(config), DType::f32, arena);
    comm::Mesh mesh({.dp = world.size()}, world);
    MeshSeams seams(config, whole_model(config), mesh, parameters, {}, {}, 0.02, arena);
    float* const gradients = parameters.gradients().as<float>();
    const std::int64_t elements = parameters.gradients().elements();

    constexpr int micro_batches = 3;
    for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
      const bool last = micro_batch + 1 == micro_batches;
      for (int unit = static_cast<int>(config.layers) + 1; unit >= 0; --unit) {
        const Range flat = parameters.units()[static_cast<std::size_t>(unit)].flat;
        for (std::int64_t i = flat.begin; i < flat.end(); ++i) {
          gradients[i] += addend(world.rank() + micro_batch, i);
        }
        seams.gradients_ready(unit, last ? model::Gradients::complete : model::Gradients::partial,
                              {});
      }
    }
    seams.wait_all({});
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      float expected = 0;
      for (int rank = 0; rank < world.size(); ++rank) {
        for (int micro_batch = 0; micro_batch < micro_batches; ++micro_batch) {
          expected += addend(rank + micro_batch, i);
        }
      }
      wrong += gradients[i] != expected;
    }
    findings.check(wrong == 0, std::to_string(wrong) + " wrong elements");
  });
}

}  // namespace
}  // namespace fourfold::parallel
