// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/train/checkpoint_writer.hpp>

#include <algorithm>
#include <string>
#include <utility>

namespace fourfold::train {
namespace {

std::vector<int> nodes_of(int ranks, std::span<const std::string> rank_hosts) {
  FOURFOLD_EXPECT(rank_hosts.empty() || std::ssize(rank_hosts) == ranks);
  return rank_hosts.empty() ? io::shared_files(ranks, 1) : io::files_by_node(rank_hosts);
}

std::vector<int> file_of_rank(const std::string& files, int ranks,
                              std::span<const std::string> rank_hosts) {
  if (files == "rank") {
    return {};
  }
  if (files != "node") {
    return io::shared_files(ranks, std::stoi(files));
  }
  return nodes_of(ranks, rank_hosts);
}

}  // namespace

io::StoreOptions store_options(const runfile::CheckpointConfig& config, int ranks,
                               std::span<const std::string> rank_hosts) {
  return {.keep_last = static_cast<int>(config.keep_last),
          .keep_every_steps = config.keep_every_steps,
          .keep_best = static_cast<int>(config.keep_best),
          .plan = {.file_of_rank = file_of_rank(config.files, ranks, rank_hosts)},
          .share_reads_from = static_cast<int>(config.share_reads_from)};
}

io::LocalTierOptions local_tier_options(const runfile::CheckpointConfig& config, int ranks,
                                        std::span<const std::string> rank_hosts) {
  return {.directory = config.node_local_dir,
          .node_of_rank = nodes_of(ranks, rank_hosts),
          .partner = config.node_local_partner,
          .keep_last = static_cast<int>(config.node_local_keep_last)};
}

CheckpointWriter::CheckpointWriter(const runfile::CheckpointConfig& config,
                                   io::CheckpointStore& store,
                                   std::span<const io::TensorLayout> layouts,
                                   comm::Communicator& world, OnCommitted on_committed)
    : when_busy_(config.when_busy),
      store_(store),
      world_(world),
      on_committed_(std::move(on_committed)) {
  if (config.async) {
    staging_bytes_ =
        config.async_copies * io::BackgroundSaver::staging_bytes(layouts, store.options().plan,
                                                                 world.rank(), world.size());
    for (std::int64_t copy = 0; copy < config.async_copies; ++copy) {
      savers_.push_back(std::make_unique<io::BackgroundSaver>(store, layouts, world));
    }
  }
}

bool CheckpointWriter::leaves_out(std::int64_t step) const {
  if (savers_.empty() || has_free_copy() || when_busy_ == runfile::BusySave::wait) {
    return false;
  }
  log::warning(
      format_message("the checkpoint of step {} is left out: that of step {} is still being "
                     "written (checkpoint.when_busy = \"skip\")",
                     step, under_way_.front().step.step));
  return true;
}

io::BackgroundSaver& CheckpointWriter::free_saver() {
  const auto free =
      std::ranges::find_if(savers_, [](const auto& saver) { return !saver->is_busy(); });
  FOURFOLD_ASSERT(free != savers_.end());
  return **free;
}

void CheckpointWriter::wait_until_read() const {
  for (const UnderWay& save : under_way_) {
    save.saver->wait_until_read();
  }
}

void CheckpointWriter::save(const MakeRequest& request) {
  const Stopwatch watch;
  const device::Range range("checkpoint");
  if (!savers_.empty() && !has_free_copy()) {
    log::info(format_message(
        "the next checkpoint waits for that of step {}, which is still being written",
        under_way_.front().step.step));
    finish_oldest();
  }
  wait_until_read();
  const io::SaveRequest wanted = request(!savers_.empty());
  telemetry::CheckpointRecord step{.step = wanted.step, .path = {}};
  if (savers_.empty()) {
    const device::Range writing("write checkpoint");
    const io::SaveReport report = store_.save(wanted, world_);
    step.save_s = watch.seconds();
    tell(std::move(step), report);
    return;
  }
  io::BackgroundSaver& saver = free_saver();
  {
    const device::Range staging("stage checkpoint");
    saver.begin(wanted, world_);
  }
  step.save_s = watch.seconds();
  under_way_.push_back({&saver, std::move(step)});
}

void CheckpointWriter::poll() {
  if (under_way_.empty()) {
    return;
  }
  if (const auto report = under_way_.front().saver->poll(world_)) {
    UnderWay done = std::move(under_way_.front());
    under_way_.pop_front();
    tell(std::move(done.step), *report);
  }
}

void CheckpointWriter::finish_oldest() {
  UnderWay oldest = std::move(under_way_.front());
  under_way_.pop_front();
  if (const auto report = oldest.saver->finish(world_)) {
    tell(std::move(oldest.step), *report);
  }
}

void CheckpointWriter::finish() {
  while (!under_way_.empty()) {
    finish_oldest();
  }
}

void CheckpointWriter::tell(telemetry::CheckpointRecord step, const io::SaveReport& report) const {
  step.path = report.path.string();
  step.bytes = report.payload_bytes;
  step.committed_s = report.seconds;
  on_committed_(step);
}

}  // namespace fourfold::train
