// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matrix_update.hpp"
#include "offloaded_update.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/train/optimizer.hpp>

#include <algorithm>
#include <functional>
#include <iterator>

namespace fourfold::train {

using parallel::ParameterShard;

namespace {

/// The numbers of a box's elements in its tensor.
kernels::StochasticRounding numbers_of(const Box& box, const Shape& shape) {
  FOURFOLD_EXPECT(shape.rank() == 1 || shape.rank() == 2);
  const std::size_t last = shape.rank() - 1;
  kernels::StochasticRounding numbers;
  numbers.first = linear_index(shape, box.offset);
  numbers.row_elements = box.extent[last];
  numbers.row_stride = shape[last];
  return numbers;
}

/// Memory of a run's state, padding included.
std::int64_t padded_elements(const ParameterShard& share, const ParameterShard::Run& run) {
  const bool is_last = &run == &share.runs().back();
  return (is_last ? share.state_elements() : std::next(&run)->state.begin) - run.state.begin;
}

}  // namespace

Optimizer::Optimizer(const OptimizerOptions& options, const ParameterShard& share, StateTier& tier,
                     std::span<const std::size_t> order,
                     const std::optional<parallel::WholeMatrices::State>& matrices)
    : share_(&share), seed_(options.seed), runs_(share.runs().size()) {
  make_groups(options.rules, tier);
  if (options.stochastic_rounding) {
    note_rounded();
  }
  if (!std::ranges::all_of(groups_,
                           [](const auto& each) { return each->elementwise != nullptr; })) {
    FOURFOLD_EXPECT(matrices.has_value());
    matrices_ = std::make_unique<MatrixUpdate>(options.rules, *this, share, *matrices, tier);
  }
  if (tier.is_offloaded()) {
    std::vector<States> states;
    std::vector<std::size_t> streamed;
    for (const RunStates& run : runs_) {
      states.push_back(run.states);
    }
    std::ranges::copy_if(order, std::back_inserter(streamed), [&](std::size_t segment) {
      const ParameterShard::Run* const run = share.find(segment);
      return run != nullptr && of(*run).group->elementwise != nullptr;
    });
    offloaded_ = std::make_unique<OffloadedUpdate>(tier, options.buffer_mb, share,
                                                   std::move(states), streamed);
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::make_groups(const UpdateRules& rules, StateTier& tier) {
  for (const std::shared_ptr<const UpdateRule>& rule : rules) {
    if (std::ranges::any_of(groups_, [&](const auto& group) { return group->rule == rule; })) {
      continue;
    }
    FOURFOLD_EXPECT(rule->states().size() <= UpdateRule::most_states);
    groups_.push_back(
        std::make_unique<Group>(rule, dynamic_cast<const ElementwiseRule*>(rule.get())));
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (rule_of(rules, share_->runs()[i].group) == rule) {
        runs_[i].group = groups_.back().get();
      }
    }
    take_states(*groups_.back(), tier);
  }
}

void Optimizer::take_states(Group& group, StateTier& tier) {
  const auto for_each_run = [&](const auto& body) {
    for (std::size_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i].group == &group) {
        body(runs_[i], share_->runs()[i]);
      }
    }
  };
  std::int64_t elements = 0;
  for_each_run([&](const RunStates&, const ParameterShard::Run& run) {
    elements += padded_elements(*share_, run);
  });
  const std::span<const std::string_view> names = group.rule->states();
  for (std::size_t state = 0; state < names.size(); ++state) {
    const TensorView flat =
        tier.state().take(device::MemoryUse::optimizer, DType::f32, Shape{elements});
    moments_.push_back({names[state], flat});
    std::int64_t begin = 0;
    for_each_run([&](RunStates& states, const ParameterShard::Run& run) {
      states.states[state] = flat.rows(begin, run.state.count);
      begin += padded_elements(*share_, run);
    });
  }
}

void Optimizer::note_rounded() {
  for (const ParameterShard::Piece& piece : share_->pieces()) {
    const model::ParameterSpec& spec = piece.parameter->spec;
    if (piece.state.count > 0 && spec.is_trainable()) {
      rounded_.push_back({piece.state, name_salt(spec.name.data(), spec.name.size()),
                          numbers_of(piece.box, spec.shape)});
    }
  }
  std::ranges::sort(rounded_, {}, [](const RoundedPiece& piece) { return piece.state.begin; });
}

const Optimizer::RunStates& Optimizer::of(const ParameterShard::Run& run) const {
  return runs_[&run - share_->runs().data()];
}

std::vector<Moment> Optimizer::states_of(const ParameterShard::Piece& piece) const {
  const auto next =
      std::ranges::upper_bound(share_->runs(), piece.state.begin, {},
                               [](const ParameterShard::Run& run) { return run.state.begin; });
  const ParameterShard::Run& run = *std::prev(next);
  const RunStates& states = of(run);
  std::vector<Moment> result;
  for (const std::string_view name : states.group->rule->states()) {
    const TensorView& state = states.states[result.size()];
    result.push_back({name, state.rows(piece.state.begin - run.state.begin, piece.state.count)
                                .reshape(piece.box.extent)});
  }
  return result;
}

void Optimizer::begin_step() {
  if (offloaded_) {
    offloaded_->begin_step();
  }
}

std::span<const std::size_t> Optimizer::update(std::size_t segment, const UpdateStep& step,
                                               device::StreamRef stream) {
  updates_ = step.update;
  updated_.assign(1, segment);
  if (matrices_ && matrices_->has(segment)) {
    updated_ = matrices_->update(segment, step, stream);
    for (const std::size_t updated : updated_) {
      if (const ParameterShard::Run* const run = share_->find(updated)) {
        make_weights(*run, stream);
      }
    }
  } else if (const ParameterShard::Run* const run = share_->find(segment)) {
    update_run(*run, step, stream);
  }
  return updated_;
}

Elements Optimizer::elements_of(const ParameterShard::Run& run) const {
  return {.state = run.state,
          .master = run.master,
          .states = of(run).states,
          .gradient = run.gradient,
          .weight = run.weight.data() != run.master.data() ? run.weight : TensorView(),
          .decay = run.decay};
}

void Optimizer::update_run(const ParameterShard::Run& run, const UpdateStep& step,
                           device::StreamRef stream) {
  const ElementwiseRule* const rule = of(run).group->elementwise;
  if (!offloaded_) {
    update(*rule, elements_of(run), step, stream);
    return;
  }
  const auto on_host = [this, rule, step](const Elements& tile, const float* gradient_scale) {
    UpdateStep host_step = step;
    host_step.gradient_scale = gradient_scale;
    update(*rule, tile, host_step, {});
  };
  const auto keep = [this, step](const Elements& tile) { round(tile, step.update - 1, {}); };
  offloaded_->update(run, step.gradient_scale, {on_host, keep}, stream);
}

template <class Body>
void Optimizer::for_each_rounded(const Elements& elements, std::int64_t update,
                                 const Body& body) const {
  std::int64_t done = elements.state.begin;
  auto piece = std::ranges::lower_bound(rounded_, done, std::less_equal{},
                                        [](const RoundedPiece& each) { return each.state.end(); });
  for (; piece != rounded_.end() && piece->state.begin < elements.state.end(); ++piece) {
    const Range part = intersection(piece->state, elements.state);
    if (part.begin > done) {  // padding, zero for good, or frozen: to nearest
      body(elements.at({done, part.begin - done}));
    }
    Elements rounded = elements.at(part);
    rounded.rounding = piece->rounding;
    rounded.rounding->key = kernels::rounding_key(seed_, update, piece->tensor);
    rounded.rounding->begin = part.begin - piece->state.begin;
    body(rounded);
    done = part.end();
  }
  if (done < elements.state.end()) {
    body(elements.at({done, elements.state.end() - done}));
  }
}

void Optimizer::round(const Elements& elements, std::int64_t update,
                      device::StreamRef stream) const {
  if (!elements.weight) {
    return;
  }
  for_each_rounded(elements, update, [&](const Elements& part) {
    if (part.rounding) {
      kernels::round_stochastically(*part.rounding, part.master, part.weight, stream, part.place);
    } else {
      kernels::cast(part.master, part.weight, stream, part.place);
    }
  });
}

void Optimizer::update(const ElementwiseRule& rule, const Elements& elements,
                       const UpdateStep& step, device::StreamRef stream) const {
  if (!elements.weight) {
    rule.update(elements, step, stream);
    return;
  }
  for_each_rounded(elements, step.update,
                   [&](const Elements& part) { rule.update(part, step, stream); });
}

void Optimizer::make_weights(const ParameterShard::Run& run, device::StreamRef stream) {
  if (offloaded_) {
    offloaded_->weights_from_masters(
        run, [this, update = updates_](const Elements& tile) { round(tile, update, {}); }, stream);
  } else {
    round(elements_of(run), updates_, stream);
  }
}

void Optimizer::update_weights_from_masters(device::StreamRef stream) {
  for (const ParameterShard::Run& run : share_->runs()) {
    make_weights(run, stream);
  }
}

void Optimizer::synchronize() {
  if (offloaded_) {
    offloaded_->synchronize();
  }
  if (matrices_) {
    matrices_->synchronize();
  }
}

}  // namespace fourfold::train
