// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "micro_batch_graphs.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/parallel/pipeline.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::parallel {
namespace {

using schedule::Action;
using schedule::ActionKind;

constexpr int activation_tag = 0;
constexpr int gradient_tag = 1;

/// The rows of a stage's residual stream that a micro-batch uses.
TensorView rows(const model::Stage& stage, TensorView residual, const model::Batch& batch) {
  return residual.rows(0, stage.residual_rows(batch));
}

/// Activations go on to the next stage, gradients come back from it.
std::vector<comm::MessageRoute> routes_of(const schedule::Schedule& schedule) {
  std::vector<comm::MessageRoute> routes;
  for (int rank = 0; rank < schedule.stages; ++rank) {
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      if (const auto after = schedule.next_peer(rank, chunk)) {
        routes.push_back({rank, after->rank, activation_tag});
        routes.push_back({after->rank, rank, gradient_tag});
      }
    }
  }
  return routes;
}

void copy_rows(TensorView to, ConstTensorView from, device::StreamRef stream) {
  device::copy(to.data(), from.data(), from.bytes(), stream);
}

}  // namespace

/// What does not change during one step.
struct Pipeline::Step {
  std::span<const model::Batch> batches;
  float gradient_scale;
  const std::function<void(model::Stage& head, int slot)>& after_loss;
  device::StreamRef stream;
  const model::Batch* recorded = nullptr;  ///< stands for any of `batches`

  const model::Batch& batch(const Action& action) const {
    return recorded != nullptr ? *recorded : batches[action.micro_batch];
  }
};

Pipeline::Pipeline(const model::Architecture& config, const schedule::StageLayout& layout,
                   comm::Communicator& pp, const model::Parameters& parameters,
                   model::ParallelHooks& hooks, device::Arena& arena, model::StageOptions options,
                   device::Arena* host, GraphsOf graphs)
    : schedule_(&layout.schedule), pp_(&pp), graphs_of_(graphs) {
  FOURFOLD_EXPECT(schedule_->stages == pp.size());
  pp.expect_messages(routes_of(*schedule_));
  options.backward = schedule_->splits_backward() ? model::StageOptions::Backward::split
                                                  : model::StageOptions::Backward::fused;
  for (const model::UnitRange& units : layout.chunks_of(pp.rank())) {
    options.slots = schedule_->slots(pp.rank(), static_cast<int>(stages_.size()));
    stages_.emplace_back(config, units, parameters, hooks, arena, options, host);
  }
  if (graphs_of_ != GraphsOf::none) {
    FOURFOLD_EXPECT(device::has_own_memory && pp.size() == 1 && stages_.size() == 1);
    FOURFOLD_EXPECT(config.dropout == 0 && !options.activations_on_host);
    graphs_ = std::make_unique<MicroBatchGraphs>(options.sequences * options.tokens, arena);
  }
}

Pipeline::~Pipeline() = default;
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;

GraphCounts Pipeline::graph_counts() const noexcept {
  return graphs_ ? graphs_->counts() : GraphCounts{};
}

/// What the actions wait for follows from the lists of all ranks. A plan, which sets one rank after
/// another up and runs none, does without.
void Pipeline::prepare() {
  schedule::Dependencies all = dependencies(*schedule_);
  nodes_ = std::move(all.nodes[pp_->rank()]);
  works_.resize(all.transfers.size());
  posted_by_.resize(all.transfers.size());
  last_weight_.resize(stages_.size());
  slots_.assign(stages_.size(), std::vector<int>(schedule_->micro_batches, -1));
  const std::vector<Action>& mine = actions();
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const std::size_t chunk = mine[i].chunk;
    slots_[chunk][mine[i].micro_batch] = mine[i].slot;
    if (nodes_[i].transfer >= 0) {
      posted_by_[nodes_[i].transfer] = i;
    }
    if (ends_backward(mine[i].kind)) {
      last_weight_[chunk] = i;
    }
  }
}

const std::vector<Action>& Pipeline::actions() const {
  return schedule_->ranks[pp_->rank()];
}

int Pipeline::slot_of(int chunk, int micro_batch) const {
  return slots_[chunk][micro_batch];
}

model::Stage* Pipeline::head() noexcept {
  const auto found = std::ranges::find_if(stages_, &model::Stage::has_head);
  return found == stages_.end() ? nullptr : &*found;
}

void Pipeline::wait_for(int transfer, device::StreamRef stream) {
  if (transfer >= 0) {
    works_[transfer].wait(stream);
    if (std::erase(in_flight_, transfer) > 0) {
      note_complete(transfer);
    }
  }
}

void Pipeline::make_progress() {
  for (const int transfer : in_flight_) {
    if (works_[transfer].test()) {
      note_complete(transfer);
    }
  }
}

void Pipeline::note_complete(int transfer) {
  const std::size_t action = posted_by_[transfer];
  if (recorder_ != nullptr && !recorder_->has_ended(action)) {
    const bool send = is_send(actions()[action].kind);
    recorder_->end(action, send ? sending_ : receiving_);
  }
}

void Pipeline::train(std::span<const model::Batch> batches, float gradient_scale,
                     const std::function<void(model::Stage& head, int slot)>& after_loss,
                     device::StreamRef stream) {
  FOURFOLD_EXPECT(std::ssize(batches) == schedule_->micro_batches);
  const Step step{batches, gradient_scale, after_loss, stream};
  if (nodes_.empty()) {
    prepare();
  }
  if (recorder_ != nullptr) {
    recorder_->begin_step();
  }
  if (graphs_) {
    graphs_->begin_step();
  }
  for (std::size_t i = 0; i < actions().size(); ++i) {
    if (begins_graph(i)) {
      take_as_graph(i, step);
      ++i;
      continue;
    }
    for (const int transfer : nodes_[i].waits) {
      wait_for(transfer, stream);
    }
    take(i, step);
    make_progress();
  }
  while (!in_flight_.empty()) {
    wait_for(in_flight_.front(), stream);
  }
}

bool Pipeline::begins_graph(std::size_t index) const {
  if (!graphs_ || recorder_ != nullptr || index + 1 >= actions().size() ||
      (graphs_of_ == GraphsOf::partial_but_first && index == 0)) {
    return false;
  }
  const Action& first = actions()[index];
  const Action& second = actions()[index + 1];
  return first.kind == ActionKind::forward && second.kind == ActionKind::backward &&
         first.micro_batch == second.micro_batch && last_weight_[0] != index + 1;
}

void Pipeline::take_as_graph(std::size_t index, const Step& step) {
  const Action& first = actions()[index];
  const Action& second = actions()[index + 1];
  const auto name = [&](const Action& action) { return str(action, schedule_->chunks); };
  // Of a graph that is launched there is no other range.
  const device::Range both([&] { return name(first) + " " + name(second); });
  graphs_->run(
      first.slot, step.batch(first), step.gradient_scale,
      [&](const model::Batch& batch) {
        Step recorded = step;
        recorded.recorded = &batch;
        {
          const device::Range range([&] { return name(first); });
          forward(first, recorded);
        }
        const device::Range range([&] { return name(second); });
        backward(second, model::Gradients::partial, recorded);
      },
      step.stream);
}

void Pipeline::take(std::size_t index, const Step& step) {
  const Action& action = actions()[index];
  const device::Range range([&] { return str(action, schedule_->chunks); });
  if (recorder_ != nullptr) {
    recorder_->begin(index, step.stream);
  }
  if (!is_compute(action.kind)) {
    post(action, step, nodes_[index].transfer);
    return;
  }
  compute(index, step);
  if (recorder_ != nullptr) {
    recorder_->end(index, step.stream);
  }
}

void Pipeline::post(const Action& action, const Step& step, int transfer) {
  const bool sends = is_send(action.kind);
  const bool activation =
      action.kind == ActionKind::send_activation || action.kind == ActionKind::receive_activation;
  model::Stage& mine = stage(action.chunk);
  const TensorView place = activation ? sends ? mine.output(action.slot) : mine.input(action.slot)
                           : sends ? mine.input_gradient(action.slot)
                                      : mine.output_gradient(action.slot);
  const TensorView data = rows(mine, place, step.batch(action));
  const int peer = schedule_->message_peer(pp_->rank(), action).value().rank;
  const int tag = activation ? activation_tag : gradient_tag;
  const device::StreamRef stream = sends ? sending_ : receiving_;
  produced_.record(
      step.stream);  // sends: it is made; receives: the slot's last was read to its end
  produced_.wait(stream);
  works_[transfer] =
      sends ? pp_->send(data, peer, tag, stream) : pp_->recv(data, peer, tag, stream);
  in_flight_.push_back(transfer);
  if (recorder_ != nullptr) {
    recorder_->posted(posted_by_[transfer], works_[transfer]);
  }
}

void Pipeline::compute(std::size_t index, const Step& step) {
  const Action& action = actions()[index];
  if (action.kind == ActionKind::forward) {
    forward(action, step);
    return;
  }
  const bool last = last_weight_[action.chunk] == index;
  backward(action, last ? model::Gradients::complete : model::Gradients::partial, step);
}

void Pipeline::forward(const Action& action, const Step& step) {
  model::Stage& now = stage(action.chunk);
  const model::Batch& batch = step.batch(action);
  if (const auto earlier = schedule_->previous_here(pp_->rank(), action.chunk)) {
    const int slot = slot_of(*earlier, action.micro_batch);
    copy_rows(rows(now, now.input(action.slot), batch),
              rows(now, stage(*earlier).output(slot), batch), step.stream);
  }
  now.forward_train(action.slot, batch, step.gradient_scale, step.stream);
  if (now.has_head() && !now.finds_loss_backward()) {
    step.after_loss(now, action.slot);
  }
}

void Pipeline::backward(const Action& action, model::Gradients state, const Step& step) {
  model::Stage& now = stage(action.chunk);
  if (action.kind == ActionKind::backward_weight) {
    now.backward_weight(action.slot, state, step.stream);
    return;
  }
  if (action.kind == ActionKind::backward) {
    now.backward(action.slot, state, step.stream);
  } else {
    now.backward_input(action.slot, step.stream);
  }
  if (now.finds_loss_backward()) {
    step.after_loss(now, action.slot);
  }
  if (const auto earlier = schedule_->previous_here(pp_->rank(), action.chunk)) {
    const model::Batch& batch = step.batch(action);
    const int slot = slot_of(*earlier, action.micro_batch);
    copy_rows(rows(now, stage(*earlier).output_gradient(slot), batch),
              rows(now, now.input_gradient(action.slot), batch), step.stream);
  }
}

void Pipeline::forward_evaluate(const model::Batch& batch, device::StreamRef stream) {
  FOURFOLD_EXPECT(in_flight_.empty());
  const int rank = pp_->rank();
  comm::Work sent;
  for (int chunk = 0; chunk < schedule_->chunks; ++chunk) {
    model::Stage& now = stage(chunk);
    if (const auto earlier = schedule_->previous_here(rank, chunk)) {
      copy_rows(rows(now, now.input(0), batch), rows(now, stage(*earlier).output(0), batch),
                stream);
    } else if (const auto before = schedule_->previous_peer(rank, chunk)) {
      pp_->recv(rows(now, now.input(0), batch), before->rank, activation_tag, stream).wait(stream);
    }
    now.forward_evaluate(0, batch, stream);
    const auto after = schedule_->next_peer(rank, chunk);
    if (after) {
      sent = pp_->send(rows(now, now.output(0), batch), after->rank, activation_tag, stream);
    }
  }
  sent.wait(stream);
}

}  // namespace fourfold::parallel
