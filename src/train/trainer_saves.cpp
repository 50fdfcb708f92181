// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a trainer saves, and where: checkpoints, and steps of the fast level between them.
#include "memory_report.hpp"
#include "resume.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/io/retention.hpp>
#include <fourfold/train/trainer.hpp>

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace fourfold::train {

bool Trainer::is_fast_due_at(std::int64_t step) const {
  return fast_ && step % config_.checkpoint.fast_every_steps == 0;
}

void Trainer::claim_directory() {
  if (!is_claimed_) {
    store_.check_writable(mesh_->world());
    store_.take_lease(mesh_->world());
    store_.sweep_leftovers(mesh_->world());
    is_claimed_ = true;
  }
}

void Trainer::open_fast_level(const TrainerOptions& options) {
  const runfile::CheckpointConfig& config = config_.checkpoint;
  if (config.fast_dir.empty()) {
    return;
  }
  if (!options.rehearses) {
    claim_directory();  // a step of the fast level may come there before the first new one
  }
  fast_.emplace(fast_options(config, mesh_->world().size(), options.facts.rank_hosts), store_,
                mesh_->world());
  const bool has_partners = config.fast_partner && fast_->nodes() > 1;
  log::info(fmt::format(
      "steps between checkpoints: every {} in {} on {} node{}{}, at most {} MiB on each",
      config.fast_every_steps, config.fast_dir, fast_->nodes(), fast_->nodes() == 1 ? "" : "s",
      has_partners ? ", with copies on the next one" : "",
      mib_text(static_cast<std::size_t>(fast_->most_node_bytes(state_.layouts())))));
  if (config.fast_partner && !has_partners) {
    log::info("checkpoint.fast_partner has no effect: all ranks are on one node");
  }
}

io::SaveRequest Trainer::save_request() {
  runner_.prepare_save(stream_);
  stream_.ref().synchronize();
  runner_.settle_state();
  check_weights();
  io::CheckpointScalars scalars = to_scalars(progress_, runner_.loss_scale(),
                                             runfile::to_toml(config_), token_counts(dataset_));
  if (validation_step_ == progress_.step) {
    scalars.texts[io::validation_loss_name] = fmt::format("{}", validation_loss_);
  }
  return {.step = progress_.step,
          .mesh = mesh_->shape(),
          .scalars = std::move(scalars),
          .tensors = state_.layouts(),
          .pieces = state_.pieces()};
}

void Trainer::save() {
  writer_.save([this] { return save_request(); }, mesh_->world(),
               [this](const CommittedStep& committed) { note(committed); });
  last_saved_step_ = progress_.step;
  memory_watch_.look();
  device::return_freed_memory();
}

void Trainer::save_fast() {
  const auto start = std::chrono::steady_clock::now();
  const auto report = fast_->save(save_request(), mesh_->world());
  fast_save_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (report) {
    log::info(fmt::format("step {} is in {} ({} MiB, {:.2f} s)", progress_.step,
                          config_.checkpoint.fast_dir,
                          mib_text(static_cast<std::size_t>(report->payload_bytes)), fast_save_s_));
  }
  memory_watch_.look();
  device::return_freed_memory();
}

void Trainer::note(const CommittedStep& committed) {
  save_s_ = committed.committed_s;
  last_checkpoint_ = committed.path;
  if (metrics_ != nullptr) {
    metrics_->checkpoint({.step = committed.step,
                          .path = committed.path.string(),
                          .bytes = committed.payload_bytes,
                          .save_s = committed.blocked_s,
                          .committed_s = committed.committed_s});
  }
}

void Trainer::poll_save() {
  writer_.poll(mesh_->world(), [this](const CommittedStep& committed) { note(committed); });
}

void Trainer::finish_save() {
  writer_.finish(mesh_->world(), [this](const CommittedStep& committed) { note(committed); });
}

}  // namespace fourfold::train
