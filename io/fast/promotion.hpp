// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fast/node_map.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace fourfold::io {

/// FastLevel::promote_newest. @param home  the run's folder on this rank's node
std::optional<std::int64_t> promote_newest_step(const std::filesystem::path& home,
                                                const NodeMap& nodes, const CheckpointStore& store,
                                                comm::Communicator& world,
                                                std::optional<std::int64_t> newest);

/// FastLevel::find_newest.
std::optional<Checkpoint> find_newest_step(const std::filesystem::path& home, const NodeMap& nodes,
                                           const CheckpointStore& store, comm::Communicator& world,
                                           std::int64_t after);

/// Steps on any node that are newer than `after`, newest first, whole or not. Collective.
std::vector<std::int64_t> fast_steps_after(const std::filesystem::path& home, const NodeMap& nodes,
                                           const CheckpointStore& store, comm::Communicator& world,
                                           std::int64_t after);

}  // namespace fourfold::io
