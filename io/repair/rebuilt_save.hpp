// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/payload_read.hpp"
#include "payload/save_job.hpp"

#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// The job that wrote some payloads, as they themselves tell it: what index and manifest are made
/// of, but for what only reading the tensors tells (save_job.hpp, describe). Not movable: the job
/// borrows the layouts.
struct RebuiltSave {
  RebuiltSave() = default;
  RebuiltSave(const RebuiltSave&) = delete;
  RebuiltSave& operator=(const RebuiltSave&) = delete;

  std::vector<TensorLayout> layouts;  ///< by id; of boxes only the job's plan knows
  SaveJob job;
};

/// Puts payloads together, in order of names. They are of one save as far as they say so themselves
/// (step, mesh, scalars, number of files), none is missing, and tensors are covered once.
/// @return what is wrong, with the name of the file or tensor
Defect rebuild_save(std::span<const std::string> names,
                    std::span<const PayloadDescription> payloads, RebuiltSave& rebuilt);

}  // namespace fourfold::io
