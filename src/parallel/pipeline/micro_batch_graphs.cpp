// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "micro_batch_graphs.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::parallel {
namespace {

constexpr std::size_t most_graphs = 8;

}  // namespace

MicroBatchGraphs::MicroBatchGraphs(std::int64_t rows, device::Arena& arena)
    : memory_(arena, device::MemoryUse::workspace, rows, {.sample = false}) {}

void MicroBatchGraphs::begin_step() {
  ++step_;
  seen_before_ = std::exchange(seen_, {});
  std::erase_if(known_, [now = kernels::recorded_work_version()](const Known& known) {
    return known.key.version != now;
  });
}

MicroBatchGraphs::Known* MicroBatchGraphs::find(const Key& key) {
  const auto found = std::ranges::find(known_, key, &Known::key);
  return found == known_.end() ? nullptr : &*found;
}

/// Makes room where what goes is of an earlier step: it is not under way any more.
bool MicroBatchGraphs::has_room() {
  if (known_.size() < most_graphs) {
    return true;
  }
  const auto oldest = std::ranges::min_element(known_, {}, &Known::last_step);
  if (oldest->last_step == step_) {
    return false;
  }
  known_.erase(oldest);
  return true;
}

MicroBatchGraphs::Known* MicroBatchGraphs::record(const Key& key, const model::Batch& batch,
                                                  const Passes& passes, device::StreamRef stream) {
  try {
    device::Graph graph = device::Graph::capture(stream, [&] { passes(batch); });
    ++counts_.captures;
    return &known_.emplace_back(Known{key, std::move(graph), step_});
  } catch (const SystemError& error) {
    // Others than what was asked for in vain, or memory that there is none of: of the device.
    if (error.code() != ExitCode::internal && error.code() != ExitCode::config) {
      throw;
    }
    can_record_ = false;
    log::local(log::Level::warning,
               format_message("micro-batches cannot be recorded as CUDA graphs, and training goes "
                              "on without: {}",
                              error.what()));
    return nullptr;
  }
}

void MicroBatchGraphs::run(int slot, const model::Batch& batch, float gradient_scale,
                           const Passes& passes, device::StreamRef stream) {
  FOURFOLD_EXPECT(batch.sequences * batch.tokens <= memory_.token_N.elements());
  const Key key{slot, batch.sequences, batch.tokens, gradient_scale,
                kernels::recorded_work_version()};
  Known* known = find(key);
  if (known == nullptr && can_record_ && std::ranges::count(seen_before_, key) > 0 && has_room()) {
    known = record(key, memory_.place_of(batch), passes, stream);
  }
  if (std::ranges::count(seen_, key) == 0) {
    seen_.push_back(key);
  }
  if (known == nullptr) {
    passes(batch);
    return;
  }
  memory_.copy(batch, stream);
  known->graph.launch(stream);
  known->last_step = step_;
  ++counts_.launches;
}

}  // namespace fourfold::parallel
