// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_arena.hpp"
#include "small_models.hpp"

#include <fourfold/model/batch.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdint>

namespace fourfold::model {
namespace {

using device::MemoryUse;
using model_test::OwnedBatch;

template <class T>
bool are_equal(ConstTensorView one, ConstTensorView other) {
  return std::equal(one.as<T>(), one.as<T>() + one.elements(), other.as<T>(),
                    other.as<T>() + other.elements());
}

TEST_CASE("a batch is copied into the first rows of its memory", "[batch]") {
  const Architecture config = model_test::small(Family::gpt2);
  harness::SharedArena arena;
  const BatchMemory memory(arena, MemoryUse::workspace, 14, {});
  CHECK(arena.bytes(MemoryUse::workspace) == 14 * (3 * 4 + 8));
  const OwnedBatch larger(config, 2, 7, 1);
  memory.copy(larger.view(), {});
  const OwnedBatch given(config, 2, 5, 2);
  const Batch copied = memory.copy(given.view(), {});
  device::StreamRef{}.synchronize();
  CHECK(copied.sequences == 2);
  CHECK(copied.tokens == 5);
  CHECK(copied.step == given.view().step);
  CHECK(copied.token_N.data() == memory.token_N.data());
  CHECK(are_equal<std::int32_t>(copied.token_N, given.view().token_N));
  CHECK(are_equal<std::int32_t>(copied.target_N, given.view().target_N));
  CHECK(are_equal<std::int32_t>(copied.position_N, given.view().position_N));
  CHECK(are_equal<std::int64_t>(copied.sample_N, given.view().sample_N));
  CHECK(memory.token_N.as<std::int32_t>()[10] == larger.view().token_N.as<std::int32_t>()[10]);
}

TEST_CASE("what a batch or its memory lacks is absent from the copy", "[batch]") {
  const Architecture config = model_test::small(Family::gpt2);
  harness::SharedArena arena;
  const BatchMemory memory(arena, MemoryUse::workspace, 14, {.token = false, .sample = false});
  CHECK_FALSE(memory.token_N);
  CHECK_FALSE(memory.sample_N);
  const OwnedBatch given(config, 2, 7, 1);
  Batch without_targets = given.view();
  without_targets.target_N = {};
  const Batch place = memory.place_of(without_targets);
  CHECK(place.position_N.data() == memory.position_N.data());
  CHECK_FALSE(place.token_N);
  CHECK_FALSE(place.target_N);
  CHECK_FALSE(place.sample_N);
  CHECK(memory.position_N.as<std::int32_t>()[1] == 0);  // nothing is copied yet
  CHECK(memory.copy(without_targets, {}).position_N.elements() == 14);
  device::StreamRef{}.synchronize();
  CHECK(memory.position_N.as<std::int32_t>()[13] == 6);
}

}  // namespace
}  // namespace fourfold::model
