// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every mesh of up to eight ranks with ZeRO 0, 1 and 3, to every other: what one saves, the other
/// loads, element for element; and the tool makes of it, byte for byte, what the other would have
/// saved (so there and back again gives the same bytes too). Values tell their tensor and place.
/// FOURFOLD_RESHARD_MATRIX=3/16 takes one of sixteen parts of all pairs; else it is a sample.
#include "../../io/save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/streamed_save.hpp>
#include <fourfold/train/state_layouts.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

constexpr int most_ranks = 8;
constexpr const char* step_name = "step-000000010";

struct Target {
  comm::MeshShape mesh;
  int zero = 0;
  std::string str() const {
    return fmt::format("pp={},dp={},cp={},tp={},zero={}", mesh.pp, mesh.dp, mesh.cp, mesh.tp, zero);
  }
};

std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (int pp = 1; pp <= most_ranks; ++pp) {
    for (int dp = 1; pp * dp <= most_ranks; ++dp) {
      for (int cp = 1; pp * dp * cp <= most_ranks; ++cp) {
        for (int tp = 1; pp * dp * cp * tp <= most_ranks; ++tp) {
          for (const int zero : {0, 1, 3}) {
            targets.push_back({{pp, dp, cp, tp}, zero});
          }
        }
      }
    }
  }
  return targets;
}

/// Divisible by what tensor parallelism must divide (any degree up to 8) and by nothing else: odd
/// vocabulary, tensors with fewer rows than ranks, one key/value head for all of a tp axis.
runfile::RunConfig odd_model() {
  runfile::RunConfig config = runfile::parse_run_config(R"([model]
family = "gpt2"
layers = 8
hidden = 5
heads = 840
kv_heads = 1
head_dim = 1
ffn = 1680
vocab = 31
context = 1680
[data]
train = ["x"])",
                                                        "odd.toml", {})
                                  .config;
  return config;
}

/// For meshes whose tp is a power of two: two key/value heads, untied, with biases, one dim that
/// any of them has to itself.
runfile::RunConfig grouped_model() {
  return runfile::parse_run_config(R"([model]
family = "llama"
layers = 9
hidden = 12
heads = 8
kv_heads = 2
head_dim = 2
ffn = 40
vocab = 37
context = 1680
qkv_bias = true
tie_embeddings = false
[data]
train = ["x"])",
                                   "grouped.toml", {})
      .config;
}

/// The steps of one model that the meshes save, each saved once.
class Saved {
 public:
  explicit Saved(runfile::RunConfig config) : config_(std::move(config)) {}

  std::vector<io::TensorLayout> layouts(const Target& target) const {
    std::vector<io::TensorId> tensors;
    for (const model::ParameterSpec& spec : model::parameter_table(config_.model)) {
      tensors.push_back({spec.name, io::TensorState::master});
      tensors.push_back({spec.name, io::TensorState("exp_avg")});
      if (!spec.is_vector()) {
        tensors.push_back({spec.name, train::error_feedback});
      }
    }
    return train::state_layouts(train::resolve_target(config_, target.str()), tensors);
  }

  const fs::path& by(const Target& target) {
    const auto [found, is_new] = folders_.try_emplace(target.str(), scratch_ / target.str());
    if (is_new) {
      each_rank(target, true, [&](const RankState& state, comm::Communicator& world) {
        io::CheckpointStore(found->second)
            .save({.step = 10,
                   .mesh = target.mesh,
                   .scalars = some_scalars(10),
                   .tensors = state.layouts,
                   .pieces = state.pieces},
                  world);
      });
    }
    return found->second;
  }

  /// Elements that are wrong after `target` has loaded what `from` saved.
  std::int64_t wrong_after_load(const Target& from, const Target& target) {
    std::atomic<std::int64_t> wrong{0};
    const fs::path& folder = by(from);
    each_rank(target, false, [&](const RankState& state, comm::Communicator& world) {
      io::CheckpointStore store(folder, {.share_reads_from = 2});
      const auto checkpoint = store.restore(state.wanted, world, {}, state.layouts);
      wrong += checkpoint ? state.wrong_elements() : 1;
    });
    return wrong;
  }

  /// Files that the tool makes otherwise than the ranks of `target` do.
  std::vector<std::string> wrong_files(const Target& from, const Target& target, int processes) {
    const fs::path to = scratch_ / "reshard";
    const fs::path& source_folder = by(from);
    comm::run_ranks(processes, [&](comm::Communicator& world) {
      const io::Checkpoint checkpoint = io::find_checkpoint(source_folder, world);
      io::CheckpointSource source(checkpoint);
      const std::vector<io::TensorLayout> target_layouts = layouts(target);
      io::save_streamed(to,
                        {.step = 10,
                         .mesh = target.mesh,
                         .scalars = checkpoint.scalars(),
                         .tensors = target_layouts,
                         .identity = checkpoint.identity(),
                         .part_bytes = 3000},
                        source, world);
    });
    std::vector<std::string> wrong;
    const fs::path direct = by(target) / step_name;
    for (const auto& entry : fs::directory_iterator(direct)) {
      const std::string name = entry.path().filename();
      if (!fs::exists(to / step_name / name) ||
          read_bytes(entry.path()) != read_bytes(to / step_name / name)) {
        wrong.push_back(name);
      }
    }
    fs::remove_all(to);
    return wrong;
  }

 private:
  template <class Work>
  void each_rank(const Target& target, bool filled, const Work& work) const {
    const std::vector<io::TensorLayout> lie = layouts(target);
    std::vector<TensorSpec> tensors;
    for (const io::TensorLayout& layout : lie) {
      tensors.push_back({layout.id, layout.dtype, layout.shape});
    }
    const Cut cut = [&](const Shape&, std::size_t tensor, int) { return lie[tensor].boxes; };
    const auto ranks = static_cast<int>(target.mesh.ranks());
    comm::run_ranks(ranks, [&](comm::Communicator& world) {
      const RankState state(tensors, cut, world.rank(), ranks, filled);
      work(state, world);
    });
  }

  runfile::RunConfig config_;
  ScratchFolder scratch_;
  std::map<std::string, fs::path> folders_;
};

/// The pairs to take: a sample that a hash of both draws, or a part of all.
struct Choice {
  std::size_t one_in = 1;
  std::size_t part = 0;
  std::size_t parts = 1;
  bool takes(std::size_t from, std::size_t to) const {
    return from % parts == part && mix64(from * 1000003 + to) % one_in == 0;
  }
};

Choice choice(std::size_t sample) {
  const char* const wanted = std::getenv("FOURFOLD_RESHARD_MATRIX");
  if (wanted == nullptr) {
    return {.one_in = sample};
  }
  Choice part;
  char slash = 0;
  std::istringstream text(wanted);
  text >> part.part >> slash >> part.parts;
  INFO("FOURFOLD_RESHARD_MATRIX=" << wanted << " is not PART/PARTS, as 0/16");
  REQUIRE((text && slash == '/' && part.part < part.parts));
  return part;
}

void check_pairs(Saved& saved, const std::vector<Target>& targets, const Choice& choice) {
  int pairs = 0;
  for (std::size_t from = 0; from < targets.size(); ++from) {
    for (std::size_t to = 0; to < targets.size(); ++to) {
      if (!choice.takes(from, to)) {
        continue;
      }
      CAPTURE(targets[from].str(), targets[to].str());
      REQUIRE(saved.wrong_after_load(targets[from], targets[to]) == 0);
      REQUIRE(saved.wrong_files(targets[from], targets[to], 1 + pairs % 3).empty());
      ++pairs;
    }
  }
  REQUIRE(pairs > 30);
}

}  // namespace

TEST_CASE("any mesh loads and cuts anew what any other saved", "[matrix]") {
  const std::vector<Target> targets = all_targets();
  REQUIRE(targets.size() == 3 * 63);
  Saved saved(odd_model());
  check_pairs(saved, targets, choice(320));
}

TEST_CASE("and so with grouped heads, biases and an untied head", "[matrix]") {
  std::vector<Target> targets;
  for (const Target& target : all_targets()) {
    if (std::has_single_bit(static_cast<unsigned>(target.mesh.tp))) {
      targets.push_back(target);
    }
  }
  Saved saved(grouped_model());
  check_pairs(saved, targets, choice(600));
}
