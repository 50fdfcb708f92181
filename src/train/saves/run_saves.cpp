// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_saves.hpp"

#include "plan/memory_report.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::train {
namespace {

io::CheckpointStore make_store(const runfile::CheckpointConfig& config,
                               const comm::Communicator& world, const RunSavesOptions& with) {
  io::StoreOptions options = store_options(config, world.size(), with.rank_hosts);
  options.done_with = with.done_with;
  return io::CheckpointStore(config.dir, std::move(options));
}

/// Of one save, if each rank writes an equal share.
double bytes_per_rank(std::span<const io::TensorLayout> layouts, int ranks) {
  std::int64_t bytes = 0;
  for (const io::TensorLayout& layout : layouts) {
    bytes += layout.shape.elements() * size_in_bytes(layout.dtype);
  }
  return static_cast<double>(bytes) / ranks;
}

}  // namespace

RunSaves::RunSaves(const runfile::RunConfig& config, std::span<const io::TensorLayout> layouts,
                   comm::Communicator& world, const RunSavesOptions& options)
    : config_(&config),
      world_(&world),
      metrics_(options.metrics),
      layouts_(layouts),
      store_(make_store(config.checkpoint, world, options)),
      writer_(config.checkpoint, store_, layouts, world,
              [this](const telemetry::CheckpointRecord& committed) { note(committed); }),
      rehearses_(options.rehearses) {
  if (!options.rehearses) {
    claim_directory();
    if (world.rank() == 0) {  // any rank that is late stops all
      earlier_save_s_ = telemetry::longest_save_s_of(telemetry::RunFiles(config.log.dir).status());
      if (time_needed_s({.save_s = earlier_save_s_, .margin_s = config.checkpoint.margin_s}) >
          options.left_s) {  // such a job would never make a step
        earlier_save_s_ = options.left_s / 4;
      }
    }
  }
  if (!config.checkpoint.node_local_dir.empty()) {
    open_local_tier(options);
  }
}

void RunSaves::open_local_tier(const RunSavesOptions& options) {
  const runfile::CheckpointConfig& config = config_->checkpoint;
  local_tier_.emplace(local_tier_options(config, world_->size(), options.rank_hosts), store_,
                      *world_);
  const bool has_partners = config.node_local_partner && local_tier_->nodes() > 1;
  log::info(format_message(
      "steps between checkpoints: every {} in {} on {} node{}{}, at most {} MiB on each",
      config.node_local_every_steps, config.node_local_dir, local_tier_->nodes(),
      local_tier_->nodes() == 1 ? "" : "s", has_partners ? ", with copies on the next one" : "",
      mib_text(local_tier_->most_node_bytes(layouts_))));
  if (config.node_local_partner && !has_partners) {
    log::info("checkpoint.node_local_partner has no effect: all ranks are on one node");
  }
}

void RunSaves::claim_directory() {
  store_.take_lease(*world_);  // first: a start that is refused removes the folder that it made
  store_.check_writable(*world_);
}

std::optional<Resumed> RunSaves::resume(const DataFacts& data,
                                        std::span<const io::WantedBox> wanted,
                                        std::span<const std::string> allowed_changes,
                                        std::function<void(const io::Checkpoint&)> look) {
  auto resumed = train::resume({.config = *config_,
                                .data = data,
                                .store = store_,
                                .wanted = wanted,
                                .layouts = layouts_,
                                .allowed_changes = allowed_changes,
                                .local_tier = local_tier_ && !rehearses_ ? &*local_tier_ : nullptr,
                                .look = std::move(look)},
                               *world_);
  if (resumed && !resumed->weights_only) {
    newest_ = resumed->checkpoint.path();
    last_step_ = resumed->checkpoint.step();
  }
  return resumed;
}

void RunSaves::begin(std::int64_t from) {
  comm::run_on_root(*world_, [&] { store_.confirm_lease(); });
  store_.sweep_leftovers(*world_);
  if (local_tier_) {
    local_tier_->begin(*world_, from);
  } else {
    io::forget_local_tier(store_, *world_);
  }
}

bool RunSaves::is_checkpoint_due_at(std::int64_t step) const {
  const std::int64_t every = config_->checkpoint.every_steps;
  return step == config_->train.steps || (every > 0 && step % every == 0);
}

bool RunSaves::is_node_local_due_at(std::int64_t step) const {
  return local_tier_ && step % config_->checkpoint.node_local_every_steps == 0;
}

bool RunSaves::is_due_at(std::int64_t step) const {
  return is_checkpoint_due_at(step) || is_node_local_due_at(step);
}

bool RunSaves::after_step(std::int64_t step, const Request& request) {
  writer_.poll();
  if (is_checkpoint_due_at(step) && (step == config_->train.steps || !writer_.leaves_out(step))) {
    save(step, request);
    return true;
  }
  if (is_node_local_due_at(step)) {
    save_node_local(step, request);
    return true;
  }
  return false;
}

bool RunSaves::save_once(std::int64_t step, const Request& request) {
  const bool is_wanted = step != last_step_ && step > 0;
  if (is_wanted) {
    save(step, request);
  }
  return is_wanted;
}

void RunSaves::save(std::int64_t step, const Request& request) {
  writer_.save(request);
  last_step_ = step;
}

void RunSaves::save_node_local(std::int64_t step, const Request& request) {
  const device::Range range("node-local checkpoint");
  const Stopwatch watch;
  writer_.wait_until_read();
  const auto report = local_tier_->save(request(false), *world_);
  local_save_s_ = watch.seconds();
  if (report) {
    log::info(format_message("step {} is in {} ({} MiB, {:.2f} s)", step,
                             config_->checkpoint.node_local_dir, mib_text(report->payload_bytes),
                             local_save_s_));
  }
}

void RunSaves::note(telemetry::CheckpointRecord committed) {
  save_s_.add(committed.committed_s);
  newest_ = committed.path;
  if (metrics_ != nullptr) {
    committed.longest_s = longest_save_s();
    metrics_->checkpoint(committed);
  }
}

void RunSaves::finish() {
  writer_.finish();
}

void RunSaves::end() {
  if (local_tier_) {
    local_tier_->end(*world_);
  }
}

void RunSaves::add_to(TimesSoFar& times, std::int64_t next_step) const {
  times.save_s = std::max(longest_save_s(), earlier_save_s_);
  times.saves_under_way = writer_.saves_under_way();
  times.save_bytes = bytes_per_rank(layouts_, world_->size());
  times.local_save_due = is_node_local_due_at(next_step);
  times.local_save_s = local_save_s_;
}

}  // namespace fourfold::train
