// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/save_request.hpp>

#include <filesystem>

namespace fourfold::io {

/// Returns when all ranks want to save the same: one all_reduce of four words. Collective.
/// @throws SystemError (internal) on all ranks alike, telling the first thing they differ in (step,
///   mesh, directory, a scalar, a tensor or how it lies on the ranks) and which rank says what
void agree_on_plan(const SaveRequest& request, const PlanOptions& options,
                   const std::filesystem::path& directory, comm::Communicator& communicator);

}  // namespace fourfold::io
