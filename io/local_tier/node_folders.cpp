// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "local_tier/node_folders.hpp"

#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "step/directory_names.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

namespace fourfold::io {

namespace {

/// No start takes so long from putting its file down to looking.
constexpr std::chrono::hours longest_trial{1};

/// Of starts that were killed in a trial; not of those that are in one now. By the node's own
/// clock.
void remove_old_trials(const std::filesystem::path& directory) {
  const auto oldest = std::filesystem::file_time_type::clock::now() - longest_trial;
  for (const std::string& name : names_in(directory).value_or(std::vector<std::string>{})) {
    std::error_code failure;
    if (is_probe(name) && std::filesystem::last_write_time(directory / name, failure) < oldest &&
        !failure) {
      std::filesystem::remove(directory / name, failure);  // next time, then
    }
  }
}

/// Whether the folder is this node's alone, by the files that all nodes have put down.
/// @param start  of their names  @param own  the name of this node's
void require_own_file_alone(const std::filesystem::path& directory, const std::string& start,
                            const std::string& own) {
  const auto names = names_in(directory);
  if (!names && kind_of(directory) != EntryKind::missing) {
    throw UserError(
        ExitCode::cannot_write,
        format_message("{}: cannot be listed; check its permissions and the file system",
                       directory.string()));
  }
  const bool sees_own = names && std::ranges::count(*names, own) > 0;
  const bool sees_others = names && std::ranges::any_of(*names, [&](const std::string& name) {
                             return name.starts_with(start) && name != own;
                           });
  if (sees_others || !sees_own) {
    throw UserError(
        ExitCode::config,
        format_message(
            "checkpoint.node_local_dir = \"{}\" is {}; name a folder on a disk of each node, or "
            "in /dev/shm",
            directory.string(),
            sees_own
                ? "the same folder on several nodes (each needs its own)"
                : "another folder for some ranks of a node (one has to see what another writes)"));
  }
}

}  // namespace

std::optional<MadeFolders> require_own_folders(const std::filesystem::path& directory,
                                               const NodeMap& nodes, comm::Communicator& world) {
  const int node = nodes.node_of(world.rank());
  const std::string start = std::string(probe_prefix) +
                            comm::broadcast_text(world, world.rank() == 0 ? random_word() : "", 0);
  const std::string own = fmt::format("{}-{}", start, node);
  std::set<int> failed;  // nodes
  std::string what;
  std::optional<comm::Failure> first_of_mine;
  // All learn which nodes fail.
  const auto note = [&](const std::optional<comm::Failure>& mine) {
    if (!first_of_mine) {
      first_of_mine = mine;
    }
    const auto messages = comm::all_gather_text(world, mine ? mine->message : "");
    for (int rank = 0; rank < std::ssize(messages); ++rank) {
      if (!messages[rank].empty() && failed.insert(nodes.node_of(rank)).second) {
        what += what.empty() ? "" : "\n  ";
        what += format_message("rank {}: {}", rank, messages[rank]);
      }
    }
  };
  const auto on_first_of_node = [&](const std::function<void()>& work) {
    return nodes.is_first(world.rank()) ? comm::capture_failure(work) : std::nullopt;
  };
  std::optional<MadeFolders> made;
  note(on_first_of_node([&] {
    made.emplace(directory);
    remove_old_trials(directory);
    write_new_file(directory / own, {});
  }));
  const auto failure = comm::capture_failure([&] {
    if (!failed.contains(node)) {
      require_own_file_alone(directory, start, own);
    }
  });
  const bool is_disks = failure && failure->code == ExitCode::cannot_write;
  note(is_disks ? failure : std::nullopt);  // from here on all have looked
  note(on_first_of_node([&] { remove_file(directory / own); }));
  comm::throw_if_any_failed(world, is_disks ? std::nullopt : failure);
  // A key that is wrong is wrong everywhere; some nodes alone have a disk that has died, and what
  // they held the others may have.
  if (std::ssize(failed) == nodes.nodes()) {
    comm::throw_if_any_failed(world, first_of_mine);
  } else if (!failed.empty()) {
    log::warning(
        format_message("checkpoint.node_local_dir = \"{}\" cannot be used on {} of {} nodes: what "
                       "they may hold of node-local steps is not looked at, and as long as this is "
                       "so no node-local step is saved; mend or replace them\n  {}",
                       directory.string(), failed.size(), nodes.nodes(), MadeLines{what}));
  }
  return made;
}

NodeMap::NodeMap(std::vector<int> node_of_rank)
    : node_of_rank_(std::move(node_of_rank)),
      nodes_(*std::ranges::max_element(node_of_rank_) + 1),
      ranks_(nodes_) {
  for (int rank = 0; rank < std::ssize(node_of_rank_); ++rank) {
    std::vector<int>& on_node = ranks_[node_of_rank_[rank]];
    place_.push_back(std::ssize(on_node));
    on_node.push_back(rank);
  }
  for (const std::vector<int>& on_node : ranks_) {
    FOURFOLD_EXPECT(!on_node.empty());
  }
}

}  // namespace fourfold::io
