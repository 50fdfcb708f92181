// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/runfile/saved_names.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/named_checkpoint.hpp>

// Apart from load_run.cpp: this takes HDF5 along.

namespace fourfold::train {

runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides) {
  return load_run(file, overrides, [](const std::string& path) {
    std::string text;
    comm::run_ranks(1, [&](comm::Communicator& self) {
      text = open_named_checkpoint(path, self).scalars().text(runfile::config_text_name);
    });
    return text;
  });
}

}  // namespace fourfold::train
