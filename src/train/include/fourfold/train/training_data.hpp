// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/data/batch_plan.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/runfile/run_config.hpp>

namespace fourfold::train {

/// How a run's token files are cut into samples. The same on all ranks.
data::TokenDataset::Options dataset_options(const runfile::RunConfig& config,
                                            data::TokenDataset::Order order);

/// Which samples each rank of a mesh takes.
data::BatchPlan batch_plan(const runfile::RunConfig& config, const comm::MeshShape& mesh);

}  // namespace fourfold::train
