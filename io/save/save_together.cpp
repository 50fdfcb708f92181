// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/save_together.hpp"

namespace fourfold::io {

void agree_on_save(comm::Communicator& communicator, std::optional<comm::Failure> mine) {
  if (mine && mine->code == ExitCode::cannot_write) {
    mine->message += "; checkpoints that exist are untouched";
  }
  comm::agree(communicator, mine);
}

void write_together(comm::Communicator& communicator, const std::function<void()>& work) {
  agree_on_save(communicator, comm::attempt(work));
}

void first_rank_writes(comm::Communicator& communicator, const std::function<void()>& work) {
  write_together(communicator, [&] {
    if (communicator.rank() == 0) {
      work();
    }
  });
}

}  // namespace fourfold::io
