// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_folders.hpp"

#include "agreement.hpp"
#include "file.hpp"
#include "step_folder.hpp"

#include <fourfold/base/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fourfold::io {
namespace {

const std::string probe_prefix = ".probe-";

}  // namespace

void require_own_folders(const std::filesystem::path& directory, const NodeMap& nodes,
                         comm::Communicator& world) {
  const bool is_first = nodes.is_first(world.rank());
  const std::string start =
      probe_prefix + comm::broadcast_text(world, world.rank() == 0 ? random_word() : "", 0);
  const std::string own = fmt::format("{}-{}", start, nodes.node_of(world.rank()));
  const auto clear_up = [&] {
    return attempt([&] {
      if (is_first) {
        remove_file(directory / own);
      }
    });
  };
  const auto put_down = attempt([&] {
    if (is_first) {
      make_directories(directory);
      write_new_file(directory / own, {});
    }
  });
  try {
    agree(world, put_down);
  } catch (...) {
    clear_up();  // what went wrong is known already
    throw;
  }
  const auto look = [&] {
    const auto names = names_in(directory).value_or(std::vector<std::string>{});
    const bool sees_own = std::ranges::count(names, own) > 0;
    const bool sees_others = std::ranges::any_of(
        names, [&](const std::string& name) { return name.starts_with(start) && name != own; });
    if (sees_others || !sees_own) {
      throw UserError(ExitCode::config,
                      fmt::format("checkpoint.fast_dir = \"{}\" is {} name a folder on a disk of "
                                  "each node, or in /dev/shm",
                                  directory.string(),
                                  sees_own ? "the same folder on several nodes (each needs its own)"
                                           : "another folder for some ranks of a node (one has to "
                                             "see what another writes)"));
    }
  };
  const auto failure = attempt(look);
  world.barrier();  // all have looked
  const auto removal = clear_up();
  agree(world, failure ? failure : removal);
}

}  // namespace fourfold::io
