// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/stochastic_rounding.hpp>
#include <fourfold/parallel/parameter_share.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/state_tier.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fourfold::train {

class OffloadedUpdate;

/// The optimizer's state of one kind ("exp_avg", "exp_avg_sq", "momentum"): f32, with one number
/// per element of the share, so that a piece's part is moment.flat at ParameterShare::Piece::state.
struct Moment {
  std::string_view name;
  TensorView flat;
};

/// The names of the moments that an optimizer keeps, in the order of Optimizer::moments().
std::span<const std::string_view> moment_names(runfile::OptimizerKind kind) noexcept;

/// AdamW, Adam or SGD with momentum over a rank's share of the parameters (kernels/optimizer.hpp
/// has the formulas). Every element is updated by itself, so any share gives the same bits.
class Optimizer {
 public:
  /// Takes the moments from `tier`; they start at zero. Everything is borrowed.
  /// @param seed       of optim.stochastic_rounding
  /// @param order      the segments in the order of every step's update(), of those that the share
  ///   has something of
  /// @param buffer_mb  offload.buffer_mb
  Optimizer(const runfile::OptimConfig& config, const parallel::ParameterShare& share,
            StateTier& tier, double buffer_mb, std::span<const std::size_t> order,
            std::uint64_t seed = 0);
  ~Optimizer();

  /// What is the same for all elements of a step.
  struct Step {
    std::int64_t update = 1;  ///< 1 for the first update of a run: bias corrections
    double lr = 0;
    /// device scalar (f32) multiplied into every gradient; where it is not finite nothing is
    /// changed
    const float* gradient_scale = nullptr;
  };
  /// Before the gradients of a step are there: offloaded state may be brought near.
  void begin_step();
  /// Updates the masters of a run of the share, and the weights made from them, with the gradients
  /// as they are.
  void update(const parallel::ParameterShare::Run& run, const Step& step, device::StreamRef stream);

  /// weight = master, rounded as the last update did, of all runs. Ordered on `stream`. @pre
  /// settled
  void update_weights_from_masters(device::StreamRef stream);
  /// The masters are what so many updates have made of them.
  void go_on_behind(std::int64_t updates) noexcept { updates_ = updates; }
  /// Brings the state to where the share's masters and moments() show it. Blocks the host; between
  /// steps, before anybody looks.
  void settle();

  std::span<const Moment> moments() const noexcept { return moments_; }

 private:
  /// What is updated together, wherever it is. Rank 1, as many elements each.
  struct Elements;
  void update(const Elements& elements, const Step& step, device::StreamRef stream) const;
  void update_alike(const Elements& elements, const Step& step,
                    const std::optional<kernels::StochasticRounding>& rounding,
                    device::StreamRef stream) const;
  /// weight = master.
  void round(const Elements& elements, std::int64_t update, device::StreamRef stream) const;
  /// Calls body(elements, rounding) for parts that cover `elements`, each of one tensor.
  template <class Body>
  void for_each_rounded(const Elements& elements, std::int64_t update, const Body& body) const;

  /// A part of a tensor whose weights are rounded at random.
  struct RoundedPiece {
    Range state;
    std::uint64_t tensor = 0;  ///< kernels::rounding_key()
    kernels::StochasticRounding rounding;
  };

  runfile::OptimConfig config_;
  const parallel::ParameterShare* share_;
  std::uint64_t seed_;
  std::int64_t updates_ = 0;  ///< that made the weights
  std::vector<Moment> moments_;
  std::vector<RoundedPiece> rounded_;           ///< by state; none when all is rounded to nearest
  std::unique_ptr<OffloadedUpdate> offloaded_;  ///< or nullptr
};

}  // namespace fourfold::train
