// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/checkpoint_contents.hpp"
#include "step/step_folder.hpp"

#include <fourfold/io/digest.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/save_request.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// A payload file that has been written whole.
struct WrittenPayload {
  std::vector<StoredExtent> extents;  ///< in their order in the file, as SaveJob::stored() has them
  std::uint64_t file_bytes = 0;
  CrcTable table;
  std::uint32_t table_crc32c = 0;
  std::uint32_t file_crc32c = 0;
};

/// A payload file that will be written, and the extents in it (indices into the plan) in the order
/// in which they lie there: those of one writer after those of another.
struct PlannedFile {
  std::string name;
  std::vector<std::size_t> extents;
};

/// A save as all that take part in it work it out alike. The tensors are borrowed.
struct SaveJob {
  std::int64_t step = 0;
  comm::MeshShape mesh;
  CheckpointScalars scalars;
  std::span<const TensorLayout> tensors;
  SavePlan plan;
  std::vector<std::int64_t> numbers;  ///< of each planned extent: the k of b<k>
  std::vector<PlannedFile> files;     ///< those that hold anything, by name
  std::string run_facts;              ///< run_facts_fingerprint

  /// None yet: to be filled with what a job of before left.
  SaveJob() = default;
  /// @param ranks  that hold and write, which need not be those that run this
  SaveJob(const SaveRequest& request, const PlanOptions& options, int ranks);

  const TensorLayout& layout_of(std::size_t extent) const {
    return tensors[plan.extents[extent].tensor];
  }
  std::uint64_t bytes_of(std::size_t extent) const;
  /// What is known of an extent beforehand. Its tensor is an index into `tensors`, and its file,
  /// its place there and its digest are not set.
  StoredExtent stored(std::size_t extent) const;
  std::int64_t payload_bytes() const;
  /// What its folder takes; index, manifest and the folder itself are files too.
  Room room() const { return {payload_bytes(), files.size() + 3}; }
};

/// Step, mesh and scalars: what ranks must agree on besides the tensors.
void add_run_facts(Fingerprint& fingerprint, const SaveRequest& request);
std::string run_facts_fingerprint(const SaveRequest& request);

/// Index and manifest (all but the size and CRC of the index) from what was written into the files
/// of the job, in their order.
void describe(const SaveJob& job, std::span<const WrittenPayload> written, Manifest& manifest,
              Index& index);

}  // namespace fourfold::io
