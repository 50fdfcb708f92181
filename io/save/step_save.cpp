// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/step_save.hpp"

#include "save/step_commit.hpp"

namespace fourfold::io {

StepSave::StepSave(const CheckpointStore& store, const SaveRequest& request,
                   comm::Communicator& communicator)
    : store_(store),
      share_(store.directory(), store.options().plan, store.done_with(), request, communicator) {
  write_together(communicator, [&] { store_.check_lease(); });
  make_way(store_, share_.job().step, communicator);
  first_rank_writes(communicator, [&] {
    folder_.emplace(store_.directory(), share_.job().step, share_.job().room());
  });
  temporary_ =
      comm::broadcast_text(communicator, folder_ ? folder_->path().string() : std::string(), 0);
}

void StepSave::publish() {
  store_.check_lease();
  const StoreOptions& options = store_.options();
  publish_step(*folder_, store_.directory(), share_.job(), share_.files(),
               {options.keep_last, options.keep_every_steps, options.keep_best},
               [&] { store_.check_lease(); });
}

std::filesystem::path StepSave::folder() const {
  return store_.directory() / step_folder_name(share_.job().step);
}

void agree_on_save(comm::Communicator& communicator, std::optional<comm::Failure> mine) {
  if (mine && mine->code == ExitCode::cannot_write) {
    mine->message += "; checkpoints that exist are untouched";
  }
  comm::throw_if_any_failed(communicator, mine);
}

void write_together(comm::Communicator& communicator, const std::function<void()>& work) {
  agree_on_save(communicator, comm::capture_failure(work));
}

void first_rank_writes(comm::Communicator& communicator, const std::function<void()>& work) {
  write_together(communicator, [&] {
    if (communicator.rank() == 0) {
      work();
    }
  });
}

}  // namespace fourfold::io
