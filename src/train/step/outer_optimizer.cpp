// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/train/outer_optimizer.hpp>

#include <algorithm>

namespace fourfold::train {
namespace {

using Run = parallel::ParameterShard::Run;

/// Whole pages, three arrays of which take a quarter of the buffer beside them.
std::int64_t elements_at_once(double buffer_mb) {
  constexpr std::int64_t page = parallel::offloaded_alignment_elements;
  const auto fitting = static_cast<std::int64_t>(buffer_mb * 1e6 / (4 * 3 * sizeof(float)));
  return std::max(page, fitting / page * page);
}

/// All replicas have the rest as it began: a mean of three equal numbers could be another one.
bool is_trained(const Run& run) {
  return run.group != model::OptimizerGroup::frozen;
}

}  // namespace

OuterOptimizer::OuterOptimizer(const ResolvedRun& run, const parallel::ParameterShard& share,
                               comm::Communicator& dp, StateTier& tier, device::Arena& device)
    : run_(&run),
      share_(&share),
      dp_(&dp),
      tier_(&tier),
      most_(elements_at_once(run.config.offload.buffer_mb)) {
  if (in_use() && device::has_own_memory && tier.is_offloaded()) {
    exchange_ = device.take(device::MemoryUse::communication, DType::f32, Shape{most_});
  }
  if (run.keeps_outer_momentum()) {
    const auto take = [&] {
      return tier.state().take(device::MemoryUse::optimizer, DType::f32,
                               Shape{share.state_elements()});
    };
    outer_ = take();
    moments_.push_back({"outer_momentum", take()});
  }
}

void OuterOptimizer::for_each_part(std::int64_t elements,
                                   const std::function<void(Range)>& body) const {
  const bool at_once = tier_->file() == nullptr && !exchange_;
  const std::int64_t most = at_once ? elements : most_;
  for (std::int64_t begin = 0; begin < elements; begin += most) {
    body({begin, std::min(most, elements - begin)});
  }
}

void OuterOptimizer::let_go(std::initializer_list<TensorView> views,
                            device::StreamRef stream) const {
  if (tier_->file() == nullptr) {
    return;
  }
  stream.synchronize();
  for (const TensorView& view : views) {
    tier_->release(view.data(), view.bytes());
  }
}

void OuterOptimizer::begin(device::StreamRef stream) const {
  if (!outer_) {
    return;
  }
  for (const Run& run : share_->runs()) {
    for_each_part(run.flat.count, [&](Range part) {
      const TensorView kept = outer_.rows(run.state.begin + part.begin, part.count);
      const TensorView master = run.master.rows(part.begin, part.count);
      device::copy(kept.data(), master.data(), kept.bytes(), stream);
      let_go({kept, master}, stream);
    });
  }
}

void OuterOptimizer::average_over_replicas(TensorView part, device::StreamRef stream) const {
  const TensorView sent = exchange_ ? exchange_.rows(0, part.elements()) : part;
  if (exchange_) {
    device::copy(sent.data(), part.data(), part.bytes(), stream);
  }
  dp_->all_reduce(sent, comm::ReduceOp::avg, stream).wait(stream);
  if (exchange_) {
    device::copy(part.data(), sent.data(), part.bytes(), stream);
  }
}

void OuterOptimizer::meet(device::StreamRef stream) {
  are_apart_ = false;
  for (const Run& run : share_->runs()) {
    if (!is_trained(run)) {
      continue;
    }
    for_each_part(run.flat.count, [&](Range part) {
      const TensorView master = run.master.rows(part.begin, part.count);
      average_over_replicas(master, stream);
      if (!outer_) {
        let_go({master}, stream);
        return;
      }
      const std::int64_t begin = run.state.begin + part.begin;
      const TensorView outer = outer_.rows(begin, part.count);
      const TensorView velocity = moments_.front().flat.rows(begin, part.count);
      step(outer, velocity, master, stream);
      let_go({master, outer, velocity}, stream);
    });
  }
}

void OuterOptimizer::step(TensorView outer, TensorView velocity, TensorView master,
                          device::StreamRef stream) const {
  const runfile::OptimConfig& optim = run_->config.optim;
  kernels::OuterStep step{.lr = static_cast<float>(optim.outer_lr),
                          .momentum = static_cast<float>(optim.outer_momentum)};
  if (!tier_->is_offloaded()) {
    kernels::outer_nesterov(step, outer, velocity, master, stream);
    return;
  }
  step.place = kernels::MemorySpace::host;
  device::run_on_host([=] { kernels::outer_nesterov(step, outer, velocity, master, {}); }, stream);
}

void OuterOptimizer::average(const Optimizer& inner, device::StreamRef stream) const {
  for (const Moment& moment : inner.moments()) {
    for_each_part(moment.flat.elements(), [&](Range range) {
      const TensorView part = moment.flat.rows(range.begin, range.count);
      average_over_replicas(part, stream);
      let_go({part}, stream);
    });
  }
}

/// Masters in f32 are the weights, where they do not lie apart.
void OuterOptimizer::add_moved_memory(parallel::MovedMemories& moved) const {
  using device::MemoryUse;
  if (exchange_) {
    parallel::add_moved(moved, *dp_, {MemoryUse::communication});
  } else if (in_use()) {
    parallel::add_moved(moved, *dp_, {MemoryUse::weights, MemoryUse::optimizer});
  }
}

std::int64_t OuterOptimizer::sent_bytes() const {
  std::int64_t elements = 0;
  for (const Run& run : share_->runs()) {
    if (is_trained(run)) {
      elements += 2 * (run.flat.count - even_part(run.flat.count, dp_->size(), dp_->rank()).count);
    }
  }
  return elements * sizeof(float);
}

}  // namespace fourfold::train
