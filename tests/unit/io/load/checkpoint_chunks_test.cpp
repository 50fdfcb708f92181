// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Extents longer than a chunk (4 MiB) and than the pieces that chunks are read in, whose rows end
// where neither does.
#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_load.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <atomic>
#include <fstream>

using namespace fourfold;
using namespace fourfold::io_test;

namespace {

using io::TensorState;

constexpr std::int64_t chunk_bytes = std::int64_t{4} << 20;

/// Two chunks and a bit, half a chunk more than one with short rows, exactly two, one chunk less an
/// element, a long vector.
std::vector<TensorSpec> large_model() {
  return {{{"a", TensorState::master}, DType::f32, {1601, 1311}},
          {{"b", TensorState::weight}, DType::bf16, {1048577, 3}},
          {{"c", TensorState::master}, DType::f32, {2, 1048576}},
          {{"d", TensorState("exp_avg")}, DType::f32, {1, 1048575}},
          {{"e", TensorState("momentum")}, DType::i64, {1300003}}};
}

#ifdef __SANITIZE_ADDRESS__  // ten times slower
constexpr std::array group_sizes{1, 3};
#else
constexpr std::array group_sizes{1, 2, 3, 4};
#endif

struct Loaded {
  std::int64_t wrong = 0;       ///< elements, or boxes where a state to compare with was given
  std::int64_t bytes_read = 0;  ///< by all ranks
  std::size_t damage = 0;
};

Loaded load_as(const std::filesystem::path& directory, const NamedCut& cut, int ranks,
               int share_from = 0, std::int64_t smallest_part_bytes = std::int64_t{8} << 20,
               const RankState* expected = nullptr) {
  std::atomic<std::int64_t> wrong{0};
  std::atomic<std::int64_t> bytes_read{0};
  std::atomic<std::size_t> damage{0};
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const RankState state(large_model(), cut.cut, world.rank(), ranks, false);
    const io::LoadReport report =
        io::load(io::find_checkpoint(directory, world), state.wanted, world, {},
                 {.layouts = state.layouts,
                  .from_holders = share_from,
                  .smallest_part_bytes = smallest_part_bytes});
    wrong += expected != nullptr ? state.boxes_unlike(*expected) : state.wrong_elements();
    bytes_read += report.bytes_read;
    damage = report.damage.size();
  });
  return {wrong, bytes_read, damage};
}

void flip_bit(const std::filesystem::path& path, std::streamoff byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(byte);
  const int value = file.get();
  file.seekp(byte);
  file.put(static_cast<char>(value ^ 1));
  REQUIRE(file.good());
}

std::int64_t payload_bytes(const std::vector<TensorSpec>& model) {
  std::int64_t bytes = 0;
  for (const TensorSpec& tensor : model) {
    bytes += tensor.shape.elements() * static_cast<std::int64_t>(size_in_bytes(tensor.dtype));
  }
  return bytes;
}

}  // namespace

TEST_CASE("extents of several chunks are read by rows, columns and flat ranges that fit none") {
  const harness::ScratchFolder scratch;
  const std::vector<NamedCut> cuts = all_cuts();
  for (const std::size_t from : {0U, 2U, 4U}) {
    const std::filesystem::path directory = scratch / cuts[from].name;
    comm::run_ranks(2, [&](comm::Communicator& world) {
      save_as(directory, cuts[from], 2, 10, world, {.keep_last = 0, .plan = {}},
              {.model = large_model()});
    });
    for (const NamedCut& to : cuts) {
      for (const int ranks : {1, 3}) {
        CAPTURE(cuts[from].name, to.name, ranks);
        const Loaded loaded = load_as(directory, to, ranks);
        CHECK(loaded.wrong == 0);
        CHECK(loaded.damage == 0);
        CHECK(loaded.bytes_read >= payload_bytes(large_model()));
      }
    }
  }
}

TEST_CASE("ranks that want the same read each byte once between them") {
  const harness::ScratchFolder scratch;
  const std::vector<NamedCut> cuts = all_cuts();
  const NamedCut& replicated = cuts[0];
  const RankState whole(large_model(), replicated.cut, 0, 1, true);
  REQUIRE(whole.wrong_elements() == 0);
  const std::int64_t bytes = payload_bytes(large_model());
  for (const std::size_t from : {0U, 2U}) {
    const std::filesystem::path directory = scratch / cuts[from].name;
    comm::run_ranks(4, [&](comm::Communicator& world) {
      save_as(directory, cuts[from], 4, 10, world, {.keep_last = 0, .plan = {}},
              {.model = large_model()});
    });
    for (const int ranks : group_sizes) {
      for (const int share_from : group_sizes) {
        CAPTURE(cuts[from].name, ranks, share_from);
        const auto load = [&](std::int64_t smallest_part_bytes) {
          return load_as(directory, replicated, ranks, share_from, smallest_part_bytes, &whole);
        };
        CHECK(load(1).wrong == 0);
        const Loaded loaded = load(std::int64_t{8} << 20);
        CHECK(loaded.wrong == 0);
        CHECK(loaded.damage == 0);
        if (ranks == 1 || share_from > ranks) {
          CHECK(loaded.bytes_read == ranks * bytes);
        } else {  // and chunks at the ends of the ranks' shares twice
          CHECK(loaded.bytes_read >= bytes);
          CHECK(loaded.bytes_read < 2 * bytes);
          const Loaded by_one = load(2 * bytes);
          CHECK(by_one.wrong == 0);
          CHECK(by_one.bytes_read == bytes);
        }
      }
    }
    CHECK(load_as(directory, cuts[5], 5, 2).wrong == 0);  // groups of two, and one rank alone
  }
  // All learn of damage that one of them read, before anything is sent.
  flip_bit(scratch / "replicated" / "step-000000010" / "shard-00002-of-00004.h5", 1 << 20);
  CHECK(load_as(scratch / "replicated", replicated, 4, 2).damage == 1);
}

TEST_CASE("a chunk is checked whole, also where only its begin is wanted") {
  const harness::ScratchFolder scratch;
  const NamedCut owners = all_cuts()[3];
  const std::vector<TensorSpec> model{{{"a", TensorState::master}, DType::f32, {3, 1048576}}};
  comm::run_ranks(1, [&](comm::Communicator& world) {
    save_as(scratch / "c", owners, 1, 10, world, {.keep_last = 0, .plan = {}}, {.model = model});
  });
  const std::filesystem::path payload =
      scratch / "c" / "step-000000010" / "shard-00000-of-00001.h5";
  const auto size = static_cast<std::streamoff>(std::filesystem::file_size(payload));
  const auto damage_of = [&](const Box& box) {
    std::vector<float> values(static_cast<std::size_t>(box.elements()));
    const io::WantedBox wanted{model[0].id, model[0].shape, box,
                               TensorView(values.data(), DType::f32, box.extent)};
    std::vector<std::string> damage;
    comm::run_ranks(1, [&](comm::Communicator& world) {
      damage = io::load(io::find_checkpoint(scratch / "c", world), {&wanted, 1}, world).damage;
    });
    return damage;
  };
  const Box begin_of_second{{1, 0}, {1, 5}};
  const Box third{{2, 0}, {1, 1048576}};
  CHECK(damage_of(begin_of_second).empty());
  flip_bit(payload, size - 3 * chunk_bytes + 2 * chunk_bytes - (1 << 16));  // late in the second
  REQUIRE(damage_of(begin_of_second).size() == 1);
  CHECK(damage_of(begin_of_second)[0].find("tensor a/master b0 is damaged in bytes") !=
        std::string::npos);
  CHECK(damage_of(third).empty());
}
