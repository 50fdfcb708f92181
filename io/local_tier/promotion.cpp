// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "local_tier/promotion.hpp"

#include "disk/file.hpp"
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

}  // namespace

Promotion::Promotion(fs::path home, const NodeMap& nodes, const CheckpointStore& store,
                     comm::Communicator& world)
    : home_(std::move(home)),
      nodes_(nodes),
      store_(store),
      world_(world),
      is_first_(nodes.is_first(world.rank())) {}

std::vector<std::int64_t> Promotion::listed() {
  StepListing listing = list_directory(home_);
  for (const PassedOver& entry : listing.passed_over) {
    if (told_.insert(entry.path).second) {
      log::local(log::Level::warning,
                 format_message("{}: is passed over: it {}", entry.path.string(), entry.why));
    }
  }
  return std::move(listing.steps);
}

std::vector<std::int64_t> Promotion::newer_than(std::int64_t newest) {
  std::string mine;
  if (is_first_) {
    // A disk that has died has nothing; whether that matters shows later.
    if (const auto failure =
            comm::capture_failure([&] { mine = fmt::format("{}", fmt::join(listed(), " ")); })) {
      log::local(log::Level::warning, failure->message);
    }
  }
  std::set<std::int64_t, std::greater<>> steps;
  for (const std::string& text : comm::all_gather_text(world_, mine)) {
    std::istringstream numbers(text);
    for (std::int64_t step = 0; numbers >> step;) {
      if (step > newest) {
        steps.insert(step);
      }
    }
  }
  return {steps.begin(), steps.end()};
}

std::optional<Checkpoint> Promotion::find_newest(std::int64_t after) {
  for (const std::int64_t step : newer_than(after)) {
    if (const auto head = head_of(step)) {
      return Checkpoint(head->contents);
    }
  }
  return std::nullopt;
}

std::int64_t Promotion::newest_in_store() {
  std::int64_t newest = -1;
  comm::run_on_root(world_, [&] {
    std::vector<std::int64_t> steps = steps_in(store_.directory());
    while (!steps.empty() && inspect(store_.directory() / step_folder_name(steps.back())).defect) {
      steps.pop_back();
    }
    newest = steps.empty() ? -1 : steps.back();
  });
  return comm::all_reduce_scalar(world_, newest, comm::ReduceOp::max);
}

bool Promotion::promote(std::int64_t step) {
  const auto start = std::chrono::steady_clock::now();
  const auto head = head_of(step);
  if (!head) {
    return false;
  }
  const CheckpointContents& contents = *head->contents;
  PayloadCopies copies(contents.manifest, home_ / step_folder_name(step), nodes_, world_);
  if (const auto missing = copies.missing(); !missing.empty()) {
    pass_over(step, fmt::format("{} of its {} files are on no node of this run: {}", missing.size(),
                                contents.manifest.files.size(), shortened(missing)));
    return false;
  }
  comm::collective_try(world_, [&] { store_.check_lease(); });
  if (make_way(store_, step, world_)) {
    log::info(format_message("step {} of the node-local tier is in {} already, and whole there",
                             step, store_.directory().string()));
    return true;
  }
  std::optional<TemporaryStep> folder;
  first_rank_writes(world_, [&] {
    folder.emplace(store_.directory(), step,
                   Room{copies.bytes(), contents.manifest.files.size() + 3});
  });
  const fs::path target = comm::broadcast_text(world_, folder ? folder->path().string() : "", 0);
  if (const auto damage = copies.copy_all(target); !damage.empty()) {
    pass_over(step, shortened(damage));
    return false;
  }
  commit(folder, *head);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  log::info(format_message(
      "step {} of the node-local tier is newer than what {} has whole: copied there ({} in {:.1f} "
      "s)",
      step, store_.directory().string(), bytes_text(copies.bytes()), elapsed.count()));
  return true;
}

std::optional<Inspection> Promotion::head_of(std::int64_t step) {
  const fs::path folder = home_ / step_folder_name(step);
  Inspection mine = no_checkpoint("");
  std::string said;  // "=FINGERPRINT" or what is wrong
  if (is_first_ && kind_of(folder) != EntryKind::missing) {
    const auto failure = comm::capture_failure([&] { mine = inspect_head(folder); });
    if (!failure && !mine.defect) {
      Fingerprint fingerprint;
      fingerprint.add(std::string_view(mine.manifest_text));
      said = "=" + fingerprint.str();
    } else {
      said = fmt::format("{}: {}", folder.string(), failure ? failure->message : *mine.defect);
    }
  }
  const std::vector<std::string> all = comm::all_gather_text(world_, said);
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
  return broadcast_inspection(std::move(mine), root, world_);
}

void Promotion::commit(std::optional<TemporaryStep>& folder, const Inspection& head) {
  first_rank_writes(world_, [&] {
    store_.check_lease();
    // Nothing is removed: the run may yet be refused, and older steps are what it can go back to.
    publish_sealed(*folder, store_.directory(),
                   {head.contents->manifest, head.index_bytes, head.manifest_text}, Retention{},
                   [&] { store_.check_lease(); });
  });
}

std::optional<std::int64_t> Promotion::promote_newest(std::optional<std::int64_t> newest) {
  for (const std::int64_t step : newer_than(newest ? *newest : newest_in_store())) {
    if (promote(step)) {
      return step;
    }
  }
  return std::nullopt;
}

}  // namespace fourfold::io
