// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/train/named_checkpoint.hpp>

#include <optional>

namespace fourfold::ckpt {

io::Checkpoint open(const std::string& path) {
  std::optional<io::Checkpoint> checkpoint;
  comm::run_ranks(
      1, [&](comm::Communicator& self) { checkpoint = train::open_named_checkpoint(path, self); });
  return *checkpoint;
}

void refuse_directory_of_run(const std::string& to) {
  if (telemetry::holds_run(to) && io::list_steps(to).empty()) {
    throw UserError(
        ExitCode::config,
        format_message("{}: is the directory of a run (a step in it would be taken for the run's, "
                       "whose checkpoints are elsewhere); name another folder",
                       to));
  }
}

}  // namespace fourfold::ckpt
