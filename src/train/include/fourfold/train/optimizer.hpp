// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/whole_matrices.hpp>
#include <fourfold/train/state_tier.hpp>
#include <fourfold/train/update_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace fourfold::train {

class MatrixUpdate;
class OffloadedUpdate;

/// A state that a rule keeps, of the parameters of its group that the share has: f32.
struct Moment {
  std::string_view name;
  TensorView flat;
};

struct OptimizerOptions {
  UpdateRules rules;
  bool stochastic_rounding = false;  ///< of bf16 weights
  std::int64_t seed = 0;             ///< of stochastic rounding
  double buffer_mb = 0;              ///< offload.buffer_mb
};

/// Updates a rank's share of the parameters, each run by the rule of its group, and keeps their
/// states.
class Optimizer {
 public:
  /// Takes the states from `tier`; they start at zero. Everything is borrowed.
  /// @param order     the segments in the order of every step's update()
  /// @param matrices  what rules of whole matrices work on; nothing where no rule is one
  /// @throws UserError (config) when such a rule is for a parameter that is no matrix
  Optimizer(const OptimizerOptions& options, const parallel::ParameterShard& share, StateTier& tier,
            std::span<const std::size_t> order,
            const std::optional<parallel::WholeMatrices::State>& matrices = {});
  ~Optimizer();

  /// Before the gradients of a step are there: offloaded state may be brought near.
  void begin_step();
  /// The gradients of a segment's run are there, as they are: updates the masters that they
  /// complete (of a matrix that lies in several segments, with the last of them), and the weights
  /// made from these. Collective over the ranks that hold the segment's matrices where their rule
  /// is a MatrixRule; else the share has something of the segment, or nothing happens.
  /// @return the segments whose weights are new now; until the next call
  std::span<const std::size_t> update(std::size_t segment, const UpdateStep& step,
                                      device::StreamRef stream);

  /// weight = master, rounded as the last update did, of all runs. Ordered on `stream`. @pre
  /// synchronized
  void update_weights_from_masters(device::StreamRef stream);
  /// The masters are what so many updates have made of them.
  void go_on_after(std::int64_t updates) noexcept { updates_ = updates; }
  /// Brings the state to where the share's masters and the states' views show it. Blocks the host;
  /// between steps, before anybody looks.
  void synchronize();

  /// All states, of all groups.
  std::span<const Moment> moments() const noexcept { return moments_; }
  /// Those of a piece of the share, in its shape.
  std::vector<Moment> states_of(const parallel::ParameterShard::Piece& piece) const;

 private:
  void take_states(const std::shared_ptr<const UpdateRule>& rule, StateTier& tier);
  const States& states_of(const parallel::ParameterShard::Run& run) const;
  Elements elements_of(const parallel::ParameterShard::Run& run) const;
  void update_run(const parallel::ParameterShard::Run& run, const UpdateStep& step,
                  device::StreamRef stream);
  void update(const ElementwiseRule& rule, const Elements& elements, const UpdateStep& step,
              device::StreamRef stream) const;
  /// weight = master, of a run, as the last update has it; or of elements.
  void make_weights(const parallel::ParameterShard::Run& run, device::StreamRef stream);
  void round(const Elements& elements, std::int64_t update, device::StreamRef stream) const;
  /// Calls body(elements) for parts that cover `elements`, each of one tensor.
  template <class Body>
  void for_each_rounded(const Elements& elements, std::int64_t update, const Body& body) const;
  void note_rounded();

  /// A part of a tensor whose weights are rounded at random.
  struct RoundedPiece {
    Range state;
    std::uint64_t tensor = 0;  ///< kernels::rounding_key()
    kernels::StochasticRounding rounding;
  };

  const parallel::ParameterShard* share_;
  std::uint64_t seed_;
  std::int64_t updates_ = 0;  ///< that made the weights
  UpdateRules rules_;
  std::vector<States> states_;  ///< of each run of the share
  std::vector<Moment> moments_;
  std::vector<RoundedPiece> rounded_;           ///< by state; none when all is rounded to nearest
  std::unique_ptr<OffloadedUpdate> offloaded_;  ///< or nullptr
  std::unique_ptr<MatrixUpdate> matrices_;      ///< or nullptr
  std::vector<std::size_t> updated_;            ///< by the last update()
};

}  // namespace fourfold::train
