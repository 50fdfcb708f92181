// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "offloaded_update.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/train/optimizer.hpp>

#include <algorithm>
#include <array>
#include <functional>

namespace fourfold::train {

using parallel::ParameterShare;

struct Optimizer::Elements {
  Range state;  ///< of the share
  TensorView master;
  std::array<TensorView, 2> moments;
  ConstTensorView gradient;
  TensorView weight;  ///< absent: the master is what products read
  bool decay = false;
  kernels::Place place = kernels::Place::device;

  static Elements of(const OffloadedUpdate::Tile& tile) {
    return {tile.state,  tile.master, tile.moments,        tile.gradient,
            tile.weight, tile.decay,  kernels::Place::host};
  }
  /// Those at `part` of the share's state.
  Elements at(Range part) const {
    const auto of = [&](const auto& view) {
      return view ? view.rows(part.begin - state.begin, part.count) : view;
    };
    Elements result = *this;
    result.state = part;
    result.master = of(master);
    result.moments = {of(moments[0]), of(moments[1])};
    result.gradient = of(gradient);
    result.weight = of(weight);
    return result;
  }
};

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

}  // namespace

std::span<const std::string_view> moment_names(runfile::OptimizerKind kind) noexcept {
  static constexpr std::array<std::string_view, 2> adam{"exp_avg", "exp_avg_sq"};
  static constexpr std::array<std::string_view, 1> sgd{"momentum"};
  return kind == runfile::OptimizerKind::sgd ? std::span<const std::string_view>(sgd)
                                             : std::span<const std::string_view>(adam);
}

Optimizer::Optimizer(const runfile::OptimConfig& config, const ParameterShare& share,
                     StateTier& tier, double buffer_mb, std::span<const std::size_t> order,
                     std::uint64_t seed)
    : config_(config), share_(&share), seed_(seed) {
  std::vector<TensorView> flat;
  for (const std::string_view name : moment_names(config.name)) {
    flat.push_back(
        tier.state().take(device::MemoryUse::optimizer, DType::f32, Shape{share.state_elements()}));
    moments_.push_back({name, flat.back()});
  }
  if (config.stochastic_rounding) {
    for (const ParameterShare::Piece& piece : share.pieces()) {
      const model::ParameterSpec& spec = piece.parameter->spec;
      if (piece.state.count > 0) {
        rounded_.push_back({piece.state, name_salt(spec.name.data(), spec.name.size()),
                            numbers_of(piece.box, spec.shape)});
      }
    }
    std::ranges::sort(rounded_, {}, [](const RoundedPiece& piece) { return piece.state.begin; });
  }
  if (tier.is_offloaded()) {
    offloaded_ = std::make_unique<OffloadedUpdate>(tier, buffer_mb, share, std::move(flat), order);
  }
}

Optimizer::~Optimizer() = default;

void Optimizer::begin_step() {
  if (offloaded_) {
    offloaded_->begin_step();
  }
}

void Optimizer::update(const ParameterShare::Run& run, const Step& step, device::StreamRef stream) {
  const bool has_weight = run.weight.data() != run.master.data();
  updates_ = step.update;
  if (!offloaded_) {
    Elements elements{.state = run.state,
                      .master = run.master,
                      .moments = {},
                      .gradient = run.gradient,
                      .weight = has_weight ? run.weight : TensorView(),
                      .decay = run.decay};
    for (std::size_t i = 0; i < moments_.size(); ++i) {
      elements.moments[i] = moments_[i].flat.rows(run.state.begin, run.state.count);
    }
    update(elements, step, stream);
    return;
  }
  const auto on_host = [this, step](const OffloadedUpdate::Tile& tile) {
    Step host_step = step;
    host_step.gradient_scale = tile.gradient_scale;
    update(Elements::of(tile), host_step, {});
  };
  const auto keep = [this, step](const OffloadedUpdate::Tile& tile) {
    round(Elements::of(tile), step.update - 1, {});
  };
  offloaded_->update(run, step.gradient_scale, {on_host, keep}, stream);
}

template <class Body>
void Optimizer::for_each_rounded(const Elements& elements, std::int64_t update,
                                 const Body& body) const {
  using Rounding = std::optional<kernels::StochasticRounding>;
  std::int64_t done = elements.state.begin;
  auto piece = std::ranges::lower_bound(rounded_, done, std::less_equal{},
                                        [](const RoundedPiece& each) { return each.state.end(); });
  for (; piece != rounded_.end() && piece->state.begin < elements.state.end(); ++piece) {
    const Range part = intersection(piece->state, elements.state);
    if (part.begin > done) {  // a gap, which is zero and stays zero
      body(elements.at({done, part.begin - done}), Rounding());
    }
    kernels::StochasticRounding rounding = piece->rounding;
    rounding.key = kernels::rounding_key(seed_, update, piece->tensor);
    rounding.begin = part.begin - piece->state.begin;
    body(elements.at(part), Rounding(rounding));
    done = part.end();
  }
  if (done < elements.state.end()) {
    body(elements.at({done, elements.state.end() - done}), Rounding());
  }
}

void Optimizer::round(const Elements& elements, std::int64_t update,
                      device::StreamRef stream) const {
  for_each_rounded(elements, update, [&](const Elements& part, const auto& rounding) {
    if (rounding) {
      kernels::round_stochastically(*rounding, part.master, part.weight, stream, part.place);
    } else {
      kernels::cast(part.master, part.weight, stream, part.place);
    }
  });
}

void Optimizer::update(const Elements& elements, const Step& step, device::StreamRef stream) const {
  if (!elements.weight) {
    update_alike(elements, step, std::nullopt, stream);
    return;
  }
  for_each_rounded(elements, step.update, [&](const Elements& part, const auto& rounding) {
    update_alike(part, step, rounding, stream);
  });
}

void Optimizer::update_alike(const Elements& elements, const Step& step,
                             const std::optional<kernels::StochasticRounding>& rounding,
                             device::StreamRef stream) const {
  const auto weight_decay = static_cast<float>(elements.decay ? config_.weight_decay : 0.0);
  if (config_.name == runfile::OptimizerKind::sgd) {
    kernels::sgd({.lr = static_cast<float>(step.lr),
                  .momentum = static_cast<float>(config_.momentum),
                  .weight_decay = weight_decay,
                  .gradient_scale = step.gradient_scale,
                  .place = elements.place,
                  .stochastic_rounding = rounding},
                 elements.master, elements.moments[0], elements.gradient, elements.weight, stream);
    return;
  }
  kernels::adam({.lr = static_cast<float>(step.lr),
                 .beta1 = config_.beta1,
                 .beta2 = config_.beta2,
                 .epsilon = static_cast<float>(config_.epsilon),
                 .weight_decay = weight_decay,
                 .decoupled = config_.name == runfile::OptimizerKind::adamw,
                 .step = step.update,
                 .gradient_scale = step.gradient_scale,
                 .place = elements.place,
                 .stochastic_rounding = rounding},
                elements.master, elements.moments[0], elements.moments[1], elements.gradient,
                elements.weight, stream);
}

void Optimizer::update_weights_from_masters(device::StreamRef stream) {
  if (offloaded_) {
    const auto round_tile = [this, update = updates_](const OffloadedUpdate::Tile& tile) {
      round(Elements::of(tile), update, {});
    };
    offloaded_->weights_from_masters(round_tile, stream);
  } else if (rounded_.empty()) {
    share_->update_weights_from_masters(stream);
  } else {
    for (const ParameterShare::Run& run : share_->runs()) {
      Elements elements;
      elements.state = run.state;
      elements.master = run.master;
      elements.weight = run.weight;
      round(elements, updates_, stream);
    }
  }
}

void Optimizer::settle() {
  if (offloaded_) {
    offloaded_->settle();
  }
}

}  // namespace fourfold::train
