// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/save_together.hpp"
#include "save/step_save.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <chrono>

namespace fourfold::io {

SaveReport CheckpointStore::save(const SaveRequest& request, comm::Communicator& communicator) {
  FOURFOLD_EXPECT(!request.has_arrived);
  const auto start = std::chrono::steady_clock::now();
  StepSave save(*this, request, communicator);
  write_together(communicator, [&] { save.write(); });
  save.gather(communicator);
  first_rank_writes(communicator, [&] { save.publish(); });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return {save.folder(), save.payload_bytes(), elapsed.count()};
}

}  // namespace fourfold::io
