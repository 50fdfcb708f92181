// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A run that goes on with tensor parallelism, and without.
#include "run/tiny_run.hpp"
#include "worst_difference.hpp"

#include <catch2/catch_test_macros.hpp>

using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
using fourfold::test::worst_difference;

TEST_CASE("a run moves between tensor-parallel meshes without losing a bit", "[tensor_parallel]") {
  const TinyRun tiny("llama");
  const RunTrace before = tiny.train(1, 4, "moved");
  tiny.copy_checkpoints("moved", "copy");
  // Restored to tp 2, nothing left to train: a save there is the same state.
  const RunTrace cut = tiny.train(4, 4, "copy", {"mesh.tp=2"});
  CHECK(cut.losses.empty());
  tiny.train(2, 8, "moved", {"mesh.tp=2"});
  const RunTrace after = tiny.train(1, 8, "moved");
  const RunTrace whole = tiny.train(1, 8, "whole");
  CHECK(after.losses.empty());
  CHECK(worst_difference(after.weights, whole.weights) <= 2e-4);
}
