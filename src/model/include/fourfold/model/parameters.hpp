// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fourfold::model {

/// One parameter and the part of it that is held here. All views have box.extent as their shape.
struct Parameter {
  ParameterSpec spec;
  Box box;              ///< which part of the logical tensor
  TensorView weight;    ///< what products read, in the compute dtype
  TensorView master;    ///< f32; the same memory as weight when the compute dtype is f32
  TensorView gradient;  ///< f32; the backward pass adds to it
  Range flat;           ///< its elements in Parameters::weights(), masters() and gradients()
};

/// A run of parameters inside the flat memory that the optimizer treats alike.
struct DecayRange {
  Range flat;  ///< elements in Parameters::weights(), masters() and gradients()
  bool decays = false;
};

/// One unit's memory: everything of it is contiguous, so buckets and optimizers work on flat
/// ranges.
struct UnitMemory {
  int unit = 0;
  Range flat;  ///< elements in Parameters::weights(), masters(), gradients()
  std::vector<DecayRange> decay_ranges;  ///< cover `flat` in order, at most one of each kind
};

/// The weights, gradients and master weights of one rank.
///
/// Layout: one flat tensor each for weights (compute dtype), masters (f32) and gradients (f32), all
/// with the same element offsets: units in order; inside a unit first what decays, then what does
/// not, each in table order; each parameter starts at a multiple of 16 elements unless it
/// `follows`. The gaps are zero and stay zero. The arena owns the memory.
class Parameters {
 public:
  /// @param table    specs in the order of units (parameter_table)
  /// @param boxes    the part held here of each; one per spec
  /// @param compute  f32, bf16 or f16
  /// Everything is zero until initialise() or a checkpoint fills it.
  Parameters(std::vector<ParameterSpec> table, std::span<const Box> boxes, DType compute,
             device::Arena& arena);
  /// Every parameter whole.
  Parameters(const std::vector<ParameterSpec>& table, DType compute, device::Arena& arena);

  DType compute_dtype() const noexcept { return compute_; }

  /// In table order. Elements stay where they are for the lifetime of this object.
  std::span<const Parameter> all() const noexcept { return parameters_; }
  auto begin() const noexcept { return parameters_.begin(); }
  auto end() const noexcept { return parameters_.end(); }
  /// nullptr when this rank has no parameter of that name.
  const Parameter* find(std::string_view name) const noexcept;
  /// @pre find(name) != nullptr
  const Parameter& at(std::string_view name) const;

  /// The units held here, in order.
  std::span<const UnitMemory> units() const noexcept { return units_; }

  /// The flat tensors, rank 1, gaps included.
  TensorView weights() const noexcept { return weights_; }
  TensorView masters() const noexcept { return masters_; }
  TensorView gradients() const noexcept { return gradients_; }

  /// Sets all gradients to zero, ordered on `stream`.
  void zero_gradients(device::StreamRef stream) const;
  /// weights = masters, rounded to the compute dtype; nothing to do for f32. Ordered on `stream`.
  void update_weights_from_masters(device::StreamRef stream) const;

 private:
  DType compute_;
  std::vector<Parameter> parameters_;
  std::vector<UnitMemory> units_;
  TensorView weights_;
  TensorView masters_;
  TensorView gradients_;
};

/// Elements of the flat tensors that Parameters would make, gaps included: for the planner.
std::int64_t flat_elements(std::span<const ParameterSpec> table, std::span<const Box> boxes);

/// Draws initial weights: element i (linear index in the logical tensor) of a normal parameter is
/// init_std * normal_float(philox_key(seed, RandomUse::initial_weight, name_salt(name)), i), so
/// each element has the same bits on every mesh. Fills masters, then rounds to weights. Blocks the
/// host.
void initialise(const Parameters& parameters, std::uint64_t seed, device::StreamRef stream);

}  // namespace fourfold::model
