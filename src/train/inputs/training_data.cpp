// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/train/training_data.hpp>

namespace fourfold::train {

data::TokenDataset::Options dataset_options(const runfile::RunConfig& config,
                                            data::TokenDataset::Order order) {
  return {.context = config.model.context,
          .vocab = config.model.vocab,
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .order = order};
}

data::BatchPlan batch_plan(const runfile::RunConfig& config, const comm::MeshShape& mesh) {
  return {.global_batch = config.train.global_batch,
          .micro_batch = config.train.micro_batch,
          .dp = mesh.dp};
}

}  // namespace fourfold::train
