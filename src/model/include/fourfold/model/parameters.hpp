// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/flat_memory.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fourfold::model {

/// One parameter and the part of it that is held here. All views have box.extent as their shape.
/// A matrix in tiles that take turns in memory has no view of the whole: there is FlatMemory::at
/// for the part of it in each segment.
struct Parameter {
  ParameterSpec spec;
  Box box;              ///< which part of the logical tensor
  TensorView weight;    ///< what products read, in the compute dtype
  TensorView master;    ///< f32, or absent; the weight itself when the compute dtype is f32
  TensorView gradient;  ///< f32; the backward pass adds to it
  Range flat;           ///< its elements in the flat memory
};

/// What of its parameters a rank has memory for.
struct ParameterMemory {
  MatrixMemory weights = MatrixMemory::whole;
  MatrixMemory gradients = MatrixMemory::whole;
  bool masters = true;    ///< false: somebody else has them
  UnitRange blocks = {};  ///< the units that are blocks; needed for double_buffered
  int tiles = 1;          ///< of each matrix (FlatLayout)
};

/// The weights, gradients and master weights of one rank.
///
/// An element has the same number (FlatLayout) in weights (compute dtype), masters (f32) and
/// gradients (f32). The gaps are zero and stay zero. The arena owns the memory.
class Parameters {
 public:
  /// @param table    specs in the order of units (parameter_table)
  /// @param boxes    the part held here of each; one per spec
  /// @param compute  f32, bf16 or f16
  /// Everything is zero until initialise() or a checkpoint fills it.
  Parameters(std::vector<ParameterSpec> table, std::span<const Box> boxes, DType compute,
             device::Arena& arena, const ParameterMemory& memory = {});
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

  const FlatLayout& layout() const noexcept { return layout_; }
  const FlatMemory& weight_memory() const noexcept { return weights_; }
  const FlatMemory& gradient_memory() const noexcept { return gradients_; }

  /// All of it, rank 1, gaps included. @pre it is whole, and here
  TensorView weights() const { return weights_.at({0, layout_.elements}); }
  TensorView gradients() const { return gradients_.at({0, layout_.elements}); }
  TensorView masters() const noexcept { return masters_; }

  /// Sets all gradients to zero, ordered on `stream`. @pre they are whole
  void zero_gradients(device::StreamRef stream) const;
  /// weights = masters, rounded to the compute dtype; nothing to do for f32. Ordered on `stream`.
  /// @pre masters are here
  void update_weights_from_masters(device::StreamRef stream) const;

 private:
  DType compute_;
  std::vector<Parameter> parameters_;
  FlatLayout layout_;
  FlatMemory weights_;
  FlatMemory gradients_;
  TensorView masters_;
};

/// Draws the part `box` of a parameter's initial values: element i (linear index in the logical
/// tensor) of a normal parameter is init_std * normal_float(philox_key(seed,
/// RandomUse::initial_weight, name_salt(name)), i), so each element has the same bits on every
/// mesh. Blocks the host, whose cores share it.
/// @param values_f32  box.elements() of them
void draw_initial(const ParameterSpec& spec, const Box& box, std::uint64_t seed,
                  TensorView values_f32, device::StreamRef stream);

/// Draws all masters, then rounds them to weights. Blocks the host. @pre masters are here
void initialise(const Parameters& parameters, std::uint64_t seed, device::StreamRef stream);

}  // namespace fourfold::model
