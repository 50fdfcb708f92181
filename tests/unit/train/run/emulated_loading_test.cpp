// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Batches that are loaded while a device has still to do what was enqueued before.
#include "tiny_run.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/train/batch_loader.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstdlib>
#include <span>
#include <vector>

namespace data = fourfold::data;
namespace device = fourfold::device;
namespace train = fourfold::train;

namespace {

constexpr std::int64_t context = 16;
constexpr std::int64_t sequences = 4;

struct Staging {
  Staging() { ::setenv("FOURFOLD_EMULATED_GPU_STAGES", "1", 1); }
  ~Staging() { ::unsetenv("FOURFOLD_EMULATED_GPU_STAGES"); }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
};

/// What a step sees of its tokens, late.
class Seen {
 public:
  void look(const train::StepBatches& batches, device::StreamRef stream) {
    const fourfold::ConstTensorView tokens = batches.micro_batches.front().token_N;
    device::copy(tokens_.view().data(), tokens.data(), tokens.bytes(), stream);
  }
  bool is_step(const data::TokenDataset& dataset, std::int64_t step) const {
    std::vector<std::int32_t> token(context);
    std::vector<std::int32_t> target(context);
    bool same = true;
    for (std::int64_t i = 0; i < sequences; ++i) {
      dataset.fill(step * sequences + i, token, target);
      same = same && std::ranges::equal(
                         token, std::span(tokens_.as<std::int32_t>() + i * context, token.size()));
    }
    return same;
  }

 private:
  device::Tensor tokens_{fourfold::DType::i32, {sequences * context}, device::MemoryKind::pinned};
};

}  // namespace

TEST_CASE("loading waits for the copies before, and for nothing else of the device",
          "[batch_loader]") {
  const fourfold::test::TinyRun tiny("gpt2");
  const data::TokenDataset dataset({{tiny.training_tokens()}},
                                   {.context = context, .vocab = 53, .seed = 7});
  device::Arena arena;
  train::BatchLoader loader(dataset, {.global_batch = sequences, .micro_batch = sequences}, 0,
                            fourfold::parallel::context_chunks(context, 1, 0), arena);
  arena.seal();
  const device::Stream computing;
  const Staging staging;
  constexpr std::int64_t steps = 8;
  std::vector<Seen> seen(steps);
  std::vector<int> over(steps);
  int ahead = 0;  // loads that did not wait for the step before
  for (std::int64_t step = 0; step < steps; ++step) {
    const auto i = static_cast<std::size_t>(step);
    seen[i].look(loader.load(step, step * sequences, computing), computing);
    // This load's copies wait for the step before, and the next load for them.
    ahead += step > 0 && over[i - 1] == 0 ? 1 : 0;
    CHECK((step < 2 || over[i - 2] == 1));
    device::run_on_host([&over, i] { over[i] = 1; }, computing);
  }
  CHECK(ahead > 0);  // all but one, unless the host is held up: then the device goes on by itself
  computing.ref().synchronize();
  for (std::int64_t step = 0; step < steps; ++step) {
    CHECK(seen[static_cast<std::size_t>(step)].is_step(dataset, step));
  }
}
