// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scratch_folder.hpp"

#include <fourfold/comm/communicator.hpp>

#include <filesystem>
#include <optional>

namespace fourfold::io_test {

/// One folder for all ranks, removed when rank 0 leaves.
class SharedFolder {
 public:
  explicit SharedFolder(comm::Communicator& world) : world_(world) {
    if (world.rank() == 0) {
      scratch_.emplace();
    }
    path_ = comm::broadcast_text(world, scratch_ ? scratch_->path().string() : "", 0);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  ~SharedFolder() { world_.barrier(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  comm::Communicator& world_;
  std::optional<harness::ScratchFolder> scratch_;
  std::filesystem::path path_;
};

}  // namespace fourfold::io_test
