// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/train/checkpoint_writer.hpp>

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

namespace fourfold::train {
namespace {

std::vector<int> file_of_rank(const std::string& files, int ranks,
                              std::span<const std::string> rank_hosts) {
  if (files == "rank") {
    return {};
  }
  if (files != "node") {
    return io::shared_files(ranks, std::stoi(files));
  }
  FOURFOLD_EXPECT(rank_hosts.empty() || std::ssize(rank_hosts) == ranks);
  return rank_hosts.empty() ? io::shared_files(ranks, 1) : io::files_by_node(rank_hosts);
}

}  // namespace

io::StoreOptions store_options(const runfile::CheckpointConfig& config, int ranks,
                               std::span<const std::string> rank_hosts) {
  return {.keep_last = static_cast<int>(config.keep_last),
          .keep_every_steps = config.keep_every_steps,
          .keep_best = static_cast<int>(config.keep_best),
          .plan = {.file_of_rank = file_of_rank(config.files, ranks, rank_hosts)}};
}

CheckpointWriter::CheckpointWriter(const runfile::CheckpointConfig& config,
                                   io::CheckpointStore& store,
                                   std::span<const io::TensorLayout> layouts,
                                   const comm::Communicator& world)
    : when_busy_(config.when_busy), store_(store) {
  if (config.async) {
    staging_bytes_ = io::BackgroundSaver::staging_bytes(layouts, store.options().plan, world.rank(),
                                                        world.size());
    saver_.emplace(store, layouts, world);
  }
}

bool CheckpointWriter::leaves_out(std::int64_t step) const {
  if (!is_busy() || when_busy_ == runfile::BusySave::wait) {
    return false;
  }
  log::warning(
      fmt::format("the checkpoint of step {} is left out: that of step {} is still being "
                  "written (checkpoint.when_busy = \"skip\")",
                  step, saver_->step()));
  return true;
}

void CheckpointWriter::save(const std::function<io::SaveRequest()>& request,
                            comm::Communicator& world, const OnCommitted& on_committed) {
  const auto start = std::chrono::steady_clock::now();
  if (is_busy()) {
    log::info(
        fmt::format("the next checkpoint waits for that of step {}, which is still being "
                    "written",
                    saver_->step()));
    finish(world, on_committed);
  }
  const io::SaveRequest wanted = request();
  std::optional<io::SaveReport> report;
  if (saver_) {
    saver_->begin(wanted, world);
  } else {
    report = store_.save(wanted, world);
  }
  step_ = wanted.step;
  blocked_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  tell(report, on_committed);
}

void CheckpointWriter::poll(comm::Communicator& world, const OnCommitted& on_committed) {
  if (saver_) {
    tell(saver_->poll(world), on_committed);
  }
}

void CheckpointWriter::finish(comm::Communicator& world, const OnCommitted& on_committed) {
  if (saver_) {
    tell(saver_->finish(world), on_committed);
  }
}

void CheckpointWriter::tell(const std::optional<io::SaveReport>& report,
                            const OnCommitted& on_committed) const {
  if (report) {
    on_committed({.step = step_,
                  .path = report->path,
                  .payload_bytes = report->payload_bytes,
                  .blocked_s = blocked_s_,
                  .committed_s = report->seconds});
  }
}

}  // namespace fourfold::train
