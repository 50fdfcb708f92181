// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_diff.hpp>
#include <fourfold/io/checkpoint_find.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <optional>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinRel;
using Kind = io::TensorDifference::Kind;

namespace {

const io::TensorId embedding{"embed.weight", io::TensorState::master};
const io::TensorId halves{"layers.1.attn.weight", io::TensorState::weight};

/// Writes the bits of one element wherever this rank holds it.
template <class T>
void set(RankState& state, const io::TensorId& id, const Shape& index, T value) {
  for (const io::WantedBox& held : state.wanted) {
    const Box one{index, Shape::filled(index.rank(), 1)};
    if (held.id == id && contains(held.box, one)) {
      for_each_run(one, held.box, one, [&](const Run& run) {
        std::memcpy(static_cast<std::byte*>(held.data.data()) + run.target_element * sizeof(T),
                    &value, sizeof(T));
      });
    }
  }
}

/// The coded state with changes, saved by `ranks` ranks under the cut.
io::Checkpoint saved(const std::filesystem::path& directory, const NamedCut& cut, int ranks,
                     const std::function<void(RankState&)>& change = {}, std::int64_t step = 10,
                     const std::vector<TensorSpec>& model = small_model()) {
  std::optional<io::Checkpoint> checkpoint;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    RankState state(model, cut.cut, world.rank(), ranks, true);
    if (change) {
      change(state);
    }
    io::CheckpointStore store(directory, {.keep_last = 0, .plan = {.smallest_part_bytes = 64}});
    store.save({.step = step,
                .mesh = {1, ranks, 1, 1},
                .scalars = some_scalars(step),
                .tensors = state.layouts,
                .pieces = state.pieces},
               world);
  });
  comm::run_ranks(
      1, [&](comm::Communicator& self) { checkpoint = io::find_checkpoint(directory, self); });
  return *checkpoint;
}

}  // namespace

TEST_CASE("the same state is equal, whoever saved it") {
  const harness::ScratchFolder scratch;
  const io::Checkpoint one = saved(scratch / "one", all_cuts()[0], 1);
  for (const NamedCut& cut : all_cuts()) {
    CAPTURE(cut.name);
    CHECK(io::compare(one, saved(scratch / cut.name, cut, 3)).none());
  }
}

TEST_CASE("elements that differ are counted and the largest named, across cuts") {
  const harness::ScratchFolder scratch;
  const auto change = [](float last) {
    return [last](RankState& state) {
      set(state, embedding, {0, 0}, 1.0F);
      set(state, embedding, {30, 12}, last);
      set(state, embedding, {7, 3}, 2.0F);
      set(state, halves, {8, 9}, BFloat16(last));
    };
  };
  for (const NamedCut& cut : all_cuts()) {
    CAPTURE(cut.name);
    const io::Checkpoint a = saved(scratch / (cut.name + "a"), all_cuts()[2], 2, change(0.5F));
    const io::Checkpoint b = saved(scratch / (cut.name + "b"), cut, 3, change(-0.25F));
    std::int64_t read = 0;
    const io::CheckpointDifferences found =
        io::compare(a, b,
                    {.largest = 2,
                     .memory_bytes = 40,  // five elements of each at a time
                     .progress = [&](std::int64_t done, std::int64_t total) {
                       CHECK(done > read);
                       CHECK(total == 2 * (31 * 13 * 4 + 9 * 10 * 2));
                       read = done;
                     }});
    CHECK(found.scalars.empty());
    REQUIRE(found.tensors.size() == 2);
    const io::TensorDifference& first = found.tensors[0];
    CHECK(first.id == embedding);
    CHECK(first.kind == Kind::other_values);
    CHECK(first.elements == 31 * 13);
    CHECK(first.different == 1);
    CHECK(first.max_abs == 0.75);
    CHECK_THAT(first.rms, WithinRel(0.75 / std::sqrt(31.0 * 13.0), 1e-12));
    REQUIRE(first.largest.size() == 1);
    CHECK(first.largest[0].index == std::vector<std::int64_t>{30, 12});
    CHECK(first.largest[0].a == 0.5);
    CHECK(first.largest[0].b == -0.25);
    CHECK(found.tensors[1].id == halves);
    CHECK(found.tensors[1].largest[0].index == std::vector<std::int64_t>{8, 9});
    CHECK(read == 2 * (31 * 13 * 4 + 9 * 10 * 2));
  }
}

TEST_CASE("the largest differences come first, and what is no number before all") {
  const harness::ScratchFolder scratch;
  const io::Checkpoint a = saved(scratch / "a", all_cuts()[0], 1, [](RankState& state) {
    for (std::int64_t column = 0; column < 5; ++column) {
      set(state, embedding, {2, column}, 0.0F);
    }
  });
  const io::Checkpoint b = saved(scratch / "b", all_cuts()[1], 4, [](RankState& state) {
    set(state, embedding, {2, 0}, 3.0F);
    set(state, embedding, {2, 1}, -5.0F);
    set(state, embedding, {2, 2}, std::nanf(""));
    set(state, embedding, {2, 3}, -0.0F);  // other bits, no distance
    set(state, embedding, {2, 4}, 4.0F);
  });
  const io::CheckpointDifferences found = io::compare(a, b);
  REQUIRE(found.tensors.size() == 1);
  const io::TensorDifference& difference = found.tensors[0];
  CHECK(difference.different == 5);
  CHECK(std::isinf(difference.max_abs));
  CHECK(std::isinf(difference.rms));
  REQUIRE(difference.largest.size() == 3);
  CHECK(std::isnan(difference.largest[0].b));
  CHECK(difference.largest[1].b == -5.0);
  CHECK(difference.largest[2].b == 4.0);
}

TEST_CASE("what only one has, other shapes and other scalars are told without reading") {
  const harness::ScratchFolder scratch;
  std::vector<TensorSpec> other = small_model();
  other[0].shape = {31, 14};
  other[1].dtype = DType::f64;
  other[2].id.name = "layers.0.other";
  const io::Checkpoint a = saved(scratch / "a", all_cuts()[0], 2);
  const io::Checkpoint b = saved(scratch / "b", all_cuts()[0], 2, {}, 20, other);
  const io::CheckpointDifferences found = io::compare(a, b, {.elements = false});
  CHECK(found.scalars ==
        std::vector<std::string>{"step: 10 and 20", "consumed_samples: 5120 and 10240"});
  REQUIRE(found.tensors.size() == 4);
  CHECK(found.tensors[0].detail == "f32 [31, 13] and f32 [31, 14]");
  CHECK(found.tensors[1].detail == "f32 [17] and f64 [17]");
  CHECK(found.tensors[2].kind == Kind::only_in_b);
  CHECK(found.tensors[3].kind == Kind::only_in_a);
  CHECK(found.tensors[3].id.name == "layers.0.scale");
}

TEST_CASE("a comparison that meets damage names it") {
  const harness::ScratchFolder scratch;
  const io::Checkpoint a = saved(scratch / "a", all_cuts()[0], 1);
  const io::Checkpoint b = saved(scratch / "b", all_cuts()[0], 1, [](RankState& state) {
    set(state, embedding, {0, 0}, 1.0F);
  });
  const io::StoredBox box = io::boxes_of(b, *b.find(embedding)).at(0);
  std::fstream file(b.path() / box.file, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(box.byte_offset + 100);
  file.put('\x55');
  file.close();
  CHECK_THROWS_MATCHES(
      io::compare(a, b), UserError,
      MessageMatches(ContainsSubstring("embed.weight/master") && ContainsSubstring(box.file)));
}

TEST_CASE("boxes and files are told as they lie on the disk") {
  const harness::ScratchFolder scratch;
  const io::Checkpoint checkpoint = saved(scratch / "rows", all_cuts()[1], 3);
  std::int64_t bytes = 0;
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    std::int64_t elements = 0;
    for (const io::StoredBox& box : io::boxes_of(checkpoint, tensor)) {
      CHECK(box.dataset.starts_with("/t/" + tensor.id.str() + "/b"));
      CHECK(std::filesystem::exists(checkpoint.path() / box.file));
      CHECK(box.bytes == box.box.elements() * size_in_bytes(tensor.dtype));
      elements += box.box.elements();
    }
    CHECK(elements == tensor.shape.elements());
    bytes += io::payload_bytes(tensor);
  }
  CHECK(io::payload_bytes(checkpoint) == bytes);
  REQUIRE(io::files_of(checkpoint).size() == 3);
  for (const io::StoredFile& file : io::files_of(checkpoint)) {
    CHECK(file.bytes == std::filesystem::file_size(checkpoint.path() / file.name));
  }
}
