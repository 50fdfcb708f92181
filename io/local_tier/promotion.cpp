// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "local_tier/local_tier_impl.hpp"
#include "local_tier/payload_copies.hpp"
#include "save/step_commit.hpp"
#include "save/step_save.hpp"
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/retention.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;

/// "a, b, c and 12 more"
std::string shortened(std::vector<std::string> names) {
  constexpr std::size_t shown = 3;
  const std::size_t count = names.size();
  names.resize(std::min(count, shown));
  return fmt::format("{}{}", fmt::join(names, ", "),
                     count > shown ? fmt::format(" and {} more", count - shown) : "");
}

void pass_over(std::int64_t step, const std::string& reason) {
  log::warning(format_message("step {} of the node-local tier is passed over: {}", step, reason));
}

/// The node-local steps of this node. Names what is passed over.
std::vector<std::int64_t> listed(const fs::path& home) {
  std::vector<PassedOver> passed_over;
  std::vector<std::int64_t> steps = list_steps(home, &passed_over);
  for (const PassedOver& entry : passed_over) {
    log::local(log::Level::warning,
               format_message("{}: is passed over: it {}", entry.path.string(), entry.why));
  }
  return steps;
}

/// -1 when there is none. Steps that are passed over here are named when the run restores.
std::int64_t newest_in_store(const fs::path& directory, comm::Communicator& world) {
  std::int64_t newest = -1;
  comm::run_on_root(world, [&] {
    std::vector<std::int64_t> steps = list_steps(directory);
    while (!steps.empty() && inspect(directory / step_folder_name(steps.back())).defect) {
      steps.pop_back();
    }
    newest = steps.empty() ? -1 : steps.back();
  });
  return comm::all_reduce_scalar(world, newest, comm::ReduceOp::max);
}

}  // namespace

std::vector<std::int64_t> LocalTier::Impl::newer_than(comm::Communicator& world,
                                                      std::int64_t newest) const {
  std::string mine;
  if (is_first) {
    // A disk that has died has nothing; whether that matters shows later.
    if (const auto failure = comm::capture_failure(
            [&] { mine = fmt::format("{}", fmt::join(listed(home()), " ")); })) {
      log::local(log::Level::warning, failure->message);
    }
  }
  std::set<std::int64_t, std::greater<>> steps;
  for (const std::string& text : comm::all_gather_text(world, mine)) {
    std::istringstream numbers(text);
    for (std::int64_t step = 0; numbers >> step;) {
      if (step > newest) {
        steps.insert(step);
      }
    }
  }
  return {steps.begin(), steps.end()};
}

std::optional<Checkpoint> LocalTier::Impl::find_newest(comm::Communicator& world,
                                                       std::int64_t after) const {
  for (const std::int64_t step : newer_than(world, after)) {
    if (const auto head = head_of(world, step)) {
      return Checkpoint(head->contents);
    }
  }
  return std::nullopt;
}

bool LocalTier::Impl::promote(comm::Communicator& world, std::int64_t step) const {
  const auto start = std::chrono::steady_clock::now();
  const auto head = head_of(world, step);
  if (!head) {
    return false;
  }
  const CheckpointContents& contents = *head->contents;
  const fs::path here = home() / step_folder_name(step);
  const NodesOfFiles nodes_with = nodes_of_payloads(contents.manifest, here, nodes, world);
  std::vector<std::string> missing;
  std::uint64_t bytes = 0;
  for (std::size_t file = 0; file < nodes_with.size(); ++file) {
    bytes += contents.manifest.files[file].bytes;
    if (nodes_with[file].empty()) {
      missing.push_back(contents.manifest.files[file].name);
    }
  }
  if (!missing.empty()) {
    pass_over(step, fmt::format("{} of its {} files are on no node of this run: {}", missing.size(),
                                contents.manifest.files.size(), shortened(missing)));
    return false;
  }
  comm::collective_try(world, [&] { store.check_lease(); });
  if (make_way(store, step, world)) {
    log::info(format_message("step {} of the node-local tier is in {} already, and whole there",
                             step, store.directory().string()));
    return true;
  }
  std::optional<TemporaryStep> folder;
  first_rank_writes(world, [&] {
    folder.emplace(store.directory(), step, Room{bytes, contents.manifest.files.size() + 3});
  });
  const fs::path target = comm::broadcast_text(world, folder ? folder->path().string() : "", 0);
  if (const auto damage = copy_payloads(contents.manifest, here, target, nodes, nodes_with, world);
      !damage.empty()) {
    pass_over(step, shortened(damage));
    return false;
  }
  first_rank_writes(world, [&] {
    store.check_lease();
    // Nothing is removed: the run may yet be refused, and older steps are what it can go back to.
    publish_sealed(*folder, store.directory(),
                   {contents.manifest, head->index_bytes, head->manifest_text}, Retention{},
                   [&] { store.check_lease(); });
  });
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  log::info(format_message(
      "step {} of the node-local tier is newer than what {} has whole: copied there ({} in {:.1f} "
      "s)",
      step, store.directory().string(), bytes_text(bytes), elapsed.count()));
  return true;
}

std::optional<Inspection> LocalTier::Impl::head_of(comm::Communicator& world,
                                                   std::int64_t step) const {
  const fs::path folder = home() / step_folder_name(step);
  Inspection mine = no_checkpoint("");
  std::string said;  // "=FINGERPRINT" or what is wrong
  if (is_first && kind_of(folder) != EntryKind::missing) {
    const auto failure = comm::capture_failure([&] { mine = inspect_head(folder); });
    if (!failure && !mine.defect) {
      Fingerprint fingerprint;
      fingerprint.add(std::string_view(mine.manifest_text));
      said = "=" + fingerprint.str();
    } else {
      said = fmt::format("{}: {}", folder.string(), failure ? failure->message : *mine.defect);
    }
  }
  const std::vector<std::string> all = comm::all_gather_text(world, said);
  int root = -1;
  std::vector<std::string> defects;
  for (int rank = 0; rank < std::ssize(all); ++rank) {
    if (all[rank].starts_with('=')) {
      root = root < 0 ? rank : root;
      if (all[rank] != all[root]) {
        pass_over(step, fmt::format("the nodes of ranks {} and {} have different manifests of it",
                                    root, rank));
        return std::nullopt;
      }
    } else if (!all[rank].empty()) {
      defects.push_back(all[rank]);
    }
  }
  if (root < 0) {
    pass_over(step,
              "no node has a manifest and an index that hold together: " + shortened(defects));
    return std::nullopt;
  }
  return broadcast_inspection(std::move(mine), root, world);
}

std::optional<std::int64_t> LocalTier::Impl::promote_newest(
    comm::Communicator& world, std::optional<std::int64_t> newest) const {
  for (const std::int64_t step :
       newer_than(world, newest ? *newest : newest_in_store(store.directory(), world))) {
    if (promote(world, step)) {
      return step;
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::io
