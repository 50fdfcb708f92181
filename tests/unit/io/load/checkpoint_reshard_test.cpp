// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/tensor_source.hpp>

#include <catch2/catch_test_macros.hpp>

#include <atomic>
#include <map>

using namespace fourfold;
using namespace fourfold::io_test;

TEST_CASE("what any cut on any number of ranks saved, any other loads, element for element") {
  const harness::ScratchFolder scratch;
  const std::vector<NamedCut> cuts = all_cuts();
  std::map<std::string, std::string> digests;
  int loads = 0;
  for (const NamedCut& from : cuts) {
    for (const int saving : {1, 3, 4}) {
      const std::filesystem::path directory = scratch / (from.name + std::to_string(saving));
      comm::run_ranks(
          saving, [&](comm::Communicator& world) { save_as(directory, from, saving, 10, world); });
      for (const NamedCut& to : cuts) {
        for (const int loading : {1, 2, 5}) {
          const int share_from = loads++ % 4;
          CAPTURE(from.name, saving, to.name, loading, share_from);
          std::atomic<std::int64_t> wrong{0};
          std::atomic<bool> scalars_hold{true};
          comm::run_ranks(loading, [&](comm::Communicator& world) {
            RankState state(small_model(), to.cut, world.rank(), loading, false);
            // By every number of ranks that can share a read, one after the other.
            io::CheckpointStore store(directory, {.share_reads_from = share_from});
            const auto checkpoint = store.restore(state.wanted, world, {}, state.layouts);
            wrong += checkpoint ? state.wrong_elements() : 1;
            if (!checkpoint || checkpoint->step() != 10 ||
                checkpoint->scalars() != some_scalars(10) ||
                checkpoint->mesh() != comm::MeshShape{1, saving, 1, 1}) {
              scalars_hold = false;
            }
            for (const io::StoredTensor& tensor : checkpoint->tensors()) {
              if (world.rank() == 0) {
                const std::string text = tensor.digest.str();
                const auto [first, is_new] = digests.emplace(tensor.id.str(), text);
                wrong += first->second == text ? 0 : 1;
              }
            }
          });
          REQUIRE(wrong == 0);
          REQUIRE(scalars_hold);
        }
      }
    }
  }
  CHECK(digests.size() == small_model().size());
}

TEST_CASE("a box of a tensor is read out of whatever boxes were saved") {
  const harness::ScratchFolder scratch;
  const NamedCut flat = all_cuts()[4];
  REQUIRE(flat.name == "flat");
  comm::run_ranks(3,
                  [&](comm::Communicator& world) { save_as(scratch / "c", flat, 3, 10, world); });
  comm::run_ranks(1, [&](comm::Communicator& self) {
    io::CheckpointSource source(io::find_checkpoint(scratch / "c", self));
    const TensorSpec tensor{
        {"layers.0.experts", io::TensorState("exp_avg")}, DType::f32, {3, 5, 7}};
    const Box box{{1, 2, 3}, {2, 3, 4}};
    std::vector<std::uint32_t> values(24, 0);
    source.read(tensor.id, box, TensorView(values.data(), DType::f32, box.extent));
    std::size_t at = 0;
    for (std::int64_t i = 1; i < 3; ++i) {
      for (std::int64_t j = 2; j < 5; ++j) {
        for (std::int64_t k = 3; k < 7; ++k) {
          REQUIRE(values[at++] ==
                  static_cast<std::uint32_t>(coded_bits(tensor, (i * 5 + j) * 7 + k)));
        }
      }
    }
    CHECK(source.bytes_read() >= 96);
  });
}
