// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint_contents.hpp"
#include "fingerprint.hpp"
#include "payload_writer.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::io {

/// A save with its plan, the extents numbered within their tensors.
struct SaveJob {
  const SaveRequest& request;
  SavePlan plan;
  std::vector<std::int64_t> numbers;  ///< of each planned extent: the k of b<k>
  std::vector<std::int64_t> extents_of_rank;

  SaveJob(const SaveRequest& save_request, SavePlan save_plan, int ranks);
  std::uint64_t payload_bytes() const;
};

/// Step, mesh and scalars: what ranks must agree on besides the tensors.
void add_run_facts(Fingerprint& fingerprint, const SaveRequest& request);

/// What rank 0 needs of a writer, as 64-bit words, so that one exchange of numbers does; empty for
/// a rank that writes nothing. Their count follows from the plan.
std::vector<std::uint64_t> words_of(const WrittenPayload& payload);
std::int64_t word_count(const SaveJob& job, int rank);

/// Index and manifest (all but the size and CRC of the index) from the plan and the words of all
/// ranks, in rank order.
void describe(const SaveJob& job, std::span<const std::uint64_t> words, Manifest& manifest,
              Index& index);

}  // namespace fourfold::io
