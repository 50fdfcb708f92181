// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "payload/payload_frame.hpp"
#include "payload/save_job.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/save_request.hpp>

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <vector>

namespace fourfold::io {

/// Which process does what of a job. The same on all of them.
struct Division {
  std::vector<int> process_of_extent;  ///< that writes it, by index into the plan
  std::vector<int> leader_of_file;     ///< that writes its frame and works out its checksums
};

/// What one process found out, by index into the plan.
using WrittenExtents = std::map<std::size_t, WrittenExtent>;

/// Brings what all processes found out to rank 0, by way of the files' leaders: two exchanges of a
/// few words per extent, whose counts follow from the plan. Collective; blocks.
/// @param frame_of  of a file (index into the job's) that this process leads; until the next call
/// @return on rank 0 all files of the job, in their order; elsewhere nothing
std::vector<WrittenPayload> gather_written(
    const SaveJob& job, const Division& division, const WrittenExtents& mine,
    const std::function<const PayloadFrame&(std::size_t file)>& frame_of,
    comm::Communicator& communicator);

/// Returns when all ranks want to save the same: one all_reduce of four words. Collective.
/// @throws SystemError (internal) on all ranks alike, telling the first thing they differ in (step,
///   mesh, directory, a scalar, a tensor or how it lies on the ranks) and which rank says what
void agree_on_plan(const SaveRequest& request, const PlanOptions& options,
                   const std::filesystem::path& directory, comm::Communicator& communicator);

}  // namespace fourfold::io
