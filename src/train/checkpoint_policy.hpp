// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <span>
#include <string>

namespace fourfold::train {

/// What [checkpoint] says of how steps are written and kept.
/// @param rank_hosts  the name of each rank's node; empty: all are on one
io::StoreOptions store_options(const runfile::CheckpointConfig& config, int ranks,
                               std::span<const std::string> rank_hosts);

}  // namespace fourfold::train
