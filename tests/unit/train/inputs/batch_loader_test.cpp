// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/tiny_run.hpp"
#include "shared_arena.hpp"

#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/train/batch_loader.hpp>

#include <catch2/catch_test_macros.hpp>

#include <set>
#include <utility>
#include <vector>

namespace data = fourfold::data;
namespace train = fourfold::train;
using fourfold::parallel::context_chunks;

TEST_CASE("the ranks of any mesh load the same samples and know how many targets all have",
          "[batch_loader]") {
  const fourfold::test::TinyRun tiny("gpt2");
  const data::TokenDataset dataset({{tiny.training_tokens()}},
                                   {.context = 16, .vocab = 53, .seed = 7});
  REQUIRE((dataset.tokens() - 1) % 16 != 0);                // so that one sample is ragged
  const std::int64_t first_sample = dataset.samples() - 3;  // a step that goes into the next epoch
  for (const std::int64_t dp : {1, 2, 4, 8}) {
    for (const std::int64_t step_begin : {std::int64_t{0}, first_sample}) {
      std::set<std::int64_t> samples;
      std::int64_t valid = 0;
      std::int64_t told = 0;
      for (int rank = 0; rank < dp; ++rank) {
        fourfold::harness::SharedArena arena;
        train::BatchLoader loader(dataset, {.global_batch = 8, .micro_batch = 1, .dp = dp}, rank,
                                  context_chunks(16, 1, 0), arena);
        arena.seal();
        const train::StepBatches batches = loader.load(3, step_begin, {});
        told = batches.targets;
        for (const auto& batch : batches.micro_batches) {
          CHECK(batch.step == 3);
          for (std::int64_t row = 0; row < batch.sequences * batch.tokens; ++row) {
            samples.insert(batch.sample_N.as<std::int64_t>()[row]);
            valid += batch.target_N.as<std::int32_t>()[row] != data::ignored_target ? 1 : 0;
            CHECK(batch.position_N.as<std::int32_t>()[row] == row % 16);
          }
        }
      }
      CHECK(samples.size() == 8);
      CHECK(*samples.begin() == step_begin);
      CHECK(valid == told);
    }
  }
}

TEST_CASE("a short last range fills part of the buffer", "[batch_loader]") {
  const fourfold::test::TinyRun tiny("gpt2");
  const data::TokenDataset dataset(
      {{tiny.training_tokens()}},
      {.context = 16, .vocab = 53, .order = data::TokenDataset::Order::sequential});
  fourfold::harness::SharedArena arena;
  train::MicroBatchBuffer buffer(4, 16, context_chunks(16, 1, 0), arena);
  const std::int64_t last = dataset.samples() - 1;
  const std::int64_t valid = buffer.fill(dataset, {last, 1}, 0, {});
  CHECK(buffer.batch().sequences == 1);
  CHECK(buffer.batch().token_N.elements() == 16);
  CHECK(valid == dataset.tokens() - 1 - last * 16);
}

TEST_CASE("the ranks of the cp axis share out each sample, positions and border targets included",
          "[batch_loader]") {
  const fourfold::test::TinyRun tiny("gpt2");
  const data::TokenDataset dataset(
      {{tiny.training_tokens()}},
      {.context = 16, .vocab = 53, .order = data::TokenDataset::Order::sequential});
  const std::int64_t first = dataset.samples() - 2;  // the second one is ragged
  std::vector<std::int32_t> token(16);
  std::vector<std::int32_t> target(16);
  for (const int cp : {1, 2, 4, 8}) {
    CAPTURE(cp);
    std::int64_t valid = 0;
    std::set<std::pair<std::int64_t, std::int32_t>> seen;
    for (int rank = 0; rank < cp; ++rank) {
      fourfold::harness::SharedArena arena;
      train::MicroBatchBuffer buffer(2, 16, context_chunks(16, cp, rank), arena);
      valid += buffer.fill(dataset, {first, 2}, 0, {});
      const fourfold::model::Batch& batch = buffer.batch();
      CHECK(batch.tokens == 16 / cp);
      REQUIRE(batch.token_N.elements() == 32 / cp);
      for (std::int64_t row = 0; row < batch.token_N.elements(); ++row) {
        const std::int64_t sample = batch.sample_N.as<std::int64_t>()[row];
        const std::int32_t position = batch.position_N.as<std::int32_t>()[row];
        CHECK(sample == first + row / batch.tokens);
        CHECK(seen.emplace(sample, position).second);
        dataset.fill(sample, token, target);
        CHECK(batch.token_N.as<std::int32_t>()[row] == token[static_cast<std::size_t>(position)]);
        CHECK(batch.target_N.as<std::int32_t>()[row] == target[static_cast<std::size_t>(position)]);
      }
    }
    CHECK(seen.size() == 32);
    CHECK(valid == 16 + dataset.tokens() - 1 - (first + 1) * 16);
  }
}
