// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/train/named_checkpoint.hpp>

#include <optional>

namespace fourfold::ckpt {

io::Checkpoint open(const std::string& path) {
  std::optional<io::Checkpoint> checkpoint;
  comm::run_ranks(
      1, [&](comm::Communicator& self) { checkpoint = train::open_named_checkpoint(path, self); });
  return *checkpoint;
}

}  // namespace fourfold::ckpt
