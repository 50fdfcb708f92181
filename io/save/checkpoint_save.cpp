// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/save_together.hpp"
#include "save/step_save.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/io/checkpoint_store.hpp>

namespace fourfold::io {

SaveReport CheckpointStore::save(const SaveRequest& request, comm::Communicator& communicator) {
  FOURFOLD_EXPECT(!request.has_arrived);
  const Stopwatch watch;
  StepSave save(*this, request, communicator);
  write_together(communicator, [&] { save.write(); });
  save.gather(communicator);
  first_rank_writes(communicator, [&] { save.publish(); });
  return {save.folder(), save.payload_bytes(), watch.seconds()};
}

}  // namespace fourfold::io
