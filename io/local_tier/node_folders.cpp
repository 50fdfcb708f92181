// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_folders.hpp"

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
void remove_old_probes(const std::filesystem::path& directory) {
  const auto oldest = std::filesystem::file_time_type::clock::now() - longest_trial;
  for (const std::string& name : names_in(directory).value_or(std::vector<std::string>{})) {
    std::error_code failure;
    if (is_probe(name) && std::filesystem::last_write_time(directory / name, failure) < oldest &&
        !failure) {
      std::filesystem::remove(directory / name, failure);  // next time, then
    }
  }
}

/// Each node puts down a file, then all look what lies there.
class FolderTrial {
 public:
  FolderTrial(const std::filesystem::path& directory, const NodeMap& nodes,
              comm::Communicator& world)
      : directory_(directory),
        nodes_(nodes),
        world_(world),
        node_(nodes.node_of(world.rank())),
        start_(std::string(probe_prefix) +
               comm::broadcast_text(world, world.rank() == 0 ? random_word() : "", 0)),
        own_(fmt::format("{}-{}", start_, node_)) {}

  /// @return the folder, on the first rank of a node that has one
  std::optional<MadeFolders> run() {
    note(on_first([&] {
      made_.emplace(directory_);
      remove_old_probes(directory_);
      write_new_file(directory_ / own_, {});
    }));
    const auto failure = comm::capture_failure([&] { look(); });
    const bool is_disks = failure && failure->code == ExitCode::cannot_write;
    note(is_disks ? failure : std::nullopt);  // from here on all have looked
    note(on_first([&] { remove_file(directory_ / own_); }));
    comm::throw_if_any_failed(world_, is_disks ? std::nullopt : failure);
    check_folders();
    return std::move(made_);
  }

 private:
  /// Of the first rank of each node.
  template <class Work>
  std::optional<comm::Failure> on_first(const Work& work) const {
    return nodes_.is_first(world_.rank()) ? comm::capture_failure(work) : std::nullopt;
  }

  /// All learn which nodes fail. Collective.
  void note(const std::optional<comm::Failure>& mine) {
    if (mine && !mine_) {
      mine_ = mine;
    }
    const auto messages = comm::all_gather_text(world_, mine ? mine->message : "");
    for (int rank = 0; rank < std::ssize(messages); ++rank) {
      if (!messages[rank].empty() && failed_.insert(nodes_.node_of(rank)).second) {
        what_ += what_.empty() ? "" : "\n  ";
        what_ += format_message("rank {}: {}", rank, messages[rank]);
      }
    }
  }

  void look() const {
    if (failed_.contains(node_)) {
      return;
    }
    const auto names = names_in(directory_);
    if (!names && kind_of(directory_) != EntryKind::missing) {
      throw UserError(
          ExitCode::cannot_write,
          format_message("{}: cannot be listed; check its permissions and the file system",
                         directory_.string()));
    }
    const bool sees_own = names && std::ranges::count(*names, own_) > 0;
    const bool sees_others = names && std::ranges::any_of(*names, [&](const std::string& name) {
                               return name.starts_with(start_) && name != own_;
                             });
    if (sees_others || !sees_own) {
      throw UserError(
          ExitCode::config,
          format_message("checkpoint.node_local_dir = \"{}\" is {} name a folder on a disk of "
                         "each node, or in /dev/shm",
                         directory_.string(),
                         sees_own ? "the same folder on several nodes (each needs its own)"
                                  : "another folder for some ranks of a node (one has to "
                                    "see what another writes)"));
    }
  }

  /// A key that is wrong is wrong everywhere; some nodes alone have a disk that has died, and what
  /// they held the others may have.
  void check_folders() const {
    if (std::ssize(failed_) == nodes_.nodes()) {
      comm::throw_if_any_failed(world_, mine_);
    } else if (!failed_.empty()) {
      log::warning(
          format_message("checkpoint.node_local_dir = \"{}\" cannot be used on {} of {} nodes: "
                         "what they may hold of "
                         "node-local steps is not looked at, and as long as this is so no "
                         "node-local step is saved; mend or "
                         "replace them\n  {}",
                         directory_.string(), failed_.size(), nodes_.nodes(), MadeLines{what_}));
    }
  }

  const std::filesystem::path& directory_;
  const NodeMap& nodes_;
  comm::Communicator& world_;
  int node_;
  std::string start_;  ///< of the names of all nodes' files
  std::string own_;
  std::set<int> failed_;  ///< nodes
  std::string what_;
  std::optional<comm::Failure> mine_;
  std::optional<MadeFolders> made_;
};

}  // namespace

std::optional<MadeFolders> require_own_folders(const std::filesystem::path& directory,
                                               const NodeMap& nodes, comm::Communicator& world) {
  return FolderTrial(directory, nodes, world).run();
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
