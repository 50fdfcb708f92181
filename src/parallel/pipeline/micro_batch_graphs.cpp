// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "micro_batch_graphs.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/runtime.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::parallel {
namespace {

constexpr std::size_t most_graphs = 8;

TensorView rows_like(TensorView own, ConstTensorView given) {
  return given ? own.rows(0, given.elements()) : TensorView();
}

}  // namespace

MicroBatchGraphs::MicroBatchGraphs(std::int64_t rows, device::Arena& arena) {
  const auto take = [&] { return arena.take(device::MemoryUse::workspace, DType::i32, {rows}); };
  token_N_ = take();
  target_N_ = take();
  position_N_ = take();
}

void MicroBatchGraphs::begin_step() {
  ++step_;
  seen_before_ = std::exchange(seen_, {});
  std::erase_if(known_, [now = kernels::recorded_work_version()](const Known& known) {
    return known.key.version != now;
  });
}

model::Batch MicroBatchGraphs::staged(const model::Batch& batch) const {
  model::Batch result = batch;
  result.token_N = rows_like(token_N_, batch.token_N);
  result.target_N = rows_like(target_N_, batch.target_N);
  result.position_N = rows_like(position_N_, batch.position_N);
  result.sample_N = {};
  return result;
}

void MicroBatchGraphs::stage(const model::Batch& batch, device::StreamRef stream) const {
  const auto copy = [&](TensorView own, ConstTensorView given) {
    if (given) {
      device::copy(own.data(), given.data(), given.bytes(), stream);
    }
  };
  copy(token_N_, batch.token_N);
  copy(target_N_, batch.target_N);
  copy(position_N_, batch.position_N);
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
  FOURFOLD_EXPECT(batch.sequences * batch.tokens <= token_N_.elements());
  const Key key{slot, batch.sequences, batch.tokens, gradient_scale,
                kernels::recorded_work_version()};
  const model::Batch as_read = staged(batch);
  Known* known = find(key);
  if (known == nullptr && can_record_ && std::ranges::count(seen_before_, key) > 0 && has_room()) {
    known = record(key, as_read, passes, stream);
  }
  if (std::ranges::count(seen_, key) == 0) {
    seen_.push_back(key);
  }
  if (known == nullptr) {
    passes(batch);
    return;
  }
  stage(batch, stream);
  known->graph.launch(stream);
  known->last_step = step_;
  ++counts_.launches;
}

}  // namespace fourfold::parallel
