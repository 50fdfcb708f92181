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
#include <utility>

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
    : share_(&share), seed_(options.seed), rules_(options.rules), states_(share.runs().size()) {
  for (const std::shared_ptr<const UpdateRule>& rule : rules_) {
    if (&rule == &*std::ranges::find(rules_, rule)) {  // groups with one rule are one
      take_states(rule, tier);
    }
  }
  if (options.stochastic_rounding) {
    note_rounded();
  }
  if (std::ranges::any_of(rules_, [](const auto& rule) {
        return dynamic_cast<const MatrixRule*>(rule.get()) != nullptr;
      })) {
    FOURFOLD_EXPECT(matrices.has_value());
    matrices_ = std::make_unique<MatrixUpdate>(rules_, *this, share, *matrices, tier);
  }
  if (tier.is_offloaded()) {
    std::vector<std::size_t> streamed;
    std::ranges::copy_if(order, std::back_inserter(streamed), [&](std::size_t segment) {
      const ParameterShard::Run* const run = share.find(segment);
      return run != nullptr && matrix_rule_of(rules_, run->group) == nullptr;
    });
    offloaded_ =
        std::make_unique<OffloadedUpdate>(tier, options.buffer_mb, share, states_, streamed);
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::take_states(const std::shared_ptr<const UpdateRule>& rule, StateTier& tier) {
  const std::span<const std::string_view> names = rule->states();
  FOURFOLD_EXPECT(names.size() <= UpdateRule::most_states);
  std::int64_t elements = 0;
  std::vector<std::pair<const ParameterShard::Run*, std::int64_t>> places;
  for (const ParameterShard::Run& run : share_->runs()) {
    if (rule_of(rules_, run.group) == rule) {
      places.emplace_back(&run, elements);
      elements += padded_elements(*share_, run);
    }
  }
  for (std::size_t state = 0; state < names.size(); ++state) {
    const TensorView flat =
        tier.state().take(device::MemoryUse::optimizer, DType::f32, Shape{elements});
    moments_.push_back({names[state], flat});
    for (const auto& [run, begin] : places) {
      states_[run - share_->runs().data()][state] = flat.rows(begin, run->state.count);
    }
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

const States& Optimizer::states_of(const ParameterShard::Run& run) const {
  return states_[&run - share_->runs().data()];
}

std::vector<Moment> Optimizer::states_of(const ParameterShard::Piece& piece) const {
  const auto next =
      std::ranges::upper_bound(share_->runs(), piece.state.begin, {},
                               [](const ParameterShard::Run& run) { return run.state.begin; });
  const ParameterShard::Run& run = *std::prev(next);
  std::vector<Moment> result;
  for (const std::string_view name : rule_of(rules_, run.group)->states()) {
    const TensorView& state = states_of(run)[result.size()];
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
          .states = states_of(run),
          .gradient = run.gradient,
          .weight = run.weight.data() != run.master.data() ? run.weight : TensorView(),
          .decay = run.decay};
}

void Optimizer::update_run(const ParameterShard::Run& run, const UpdateStep& step,
                           device::StreamRef stream) {
  const auto& rule = dynamic_cast<const ElementwiseRule&>(*rule_of(rules_, run.group));
  if (!offloaded_) {
    update(rule, elements_of(run), step, stream);
    return;
  }
  const auto on_host = [this, &rule, step](const Elements& tile, const float* gradient_scale) {
    UpdateStep host_step = step;
    host_step.gradient_scale = gradient_scale;
    update(rule, tile, host_step, {});
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
