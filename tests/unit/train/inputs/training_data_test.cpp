// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/train/batch_loader.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold;

TEST_CASE("the mesh says how many ranks share the samples, the run file the rest",
          "[training_data]") {
  runfile::RunConfig config;
  config.model.context = 24;
  config.model.vocab = 53;
  config.train.seed = 9;
  config.train.global_batch = 12;
  config.train.micro_batch = 3;
  const data::BatchPlan plan = train::batch_plan(config, {.pp = 2, .dp = 4, .cp = 3, .tp = 2});
  CHECK(plan.dp == 4);
  CHECK(plan.accumulation_steps() == 1);
  const auto options = train::dataset_options(config, data::TokenDataset::Order::sequential);
  CHECK(options.context == 24);
  CHECK(options.vocab == 53);
  CHECK(options.seed == 9);
  CHECK(options.order == data::TokenDataset::Order::sequential);
}
