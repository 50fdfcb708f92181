// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/train/mesh_trace.hpp>

#include <optional>
#include <string>

namespace fourfold::train {

/// The largest relative errors that pass at the first step. Losses and gradients of each later step
/// may be off by twice as much: weights that differ by rounding are trained on. These are for f32.
struct Tolerances {
  double loss = 1e-5;
  double gradient = 1e-4;
  double weight = 1e-4;
};

/// What sound meshes keep to when activations are of this type. Updates are f32 in all of them. In
/// 16 bits sums in another order differ by a hundredth of a tensor's gradient, by more where terms
/// cancel: whether a mesh is right shows in f32, which runs the same code.
Tolerances tolerances_for(DType precision) noexcept;

/// What one mesh gave beside the reference, over all steps.
///
/// With a the reference's numbers and b the other's, the error of a loss (or gradient norm) is
/// |b - a| / |a|; that of a tensor is |b - a| / |a| in the L2 norm, where |a| counts as at least
/// 1e-2 of what an equally large piece of all tensors has on average. So gradients that are zero
/// but for rounding (of the key biases, which a softmax does not see) are held against the others.
///
/// Weights after a step are not held against the reference's. Adam divides by the size of the
/// gradient, so where that is all but zero its rounding decides about the whole update, and two
/// sound meshes move apart. They are held against what the reference's optimizer, in its plain and
/// serial body, makes of this mesh's own gradients and its weights before the step: |b - expected|
/// as a share of |expected - before|, in the L2 norm, without what the rounding of weights to f32
/// can make. Gradients being compared at every step, nothing else can differ.
struct MeshComparison {
  bool same_initial_weights = false;  ///< bit for bit
  bool ranks_agree = false;           ///< MeshTrace::disagreements is empty
  double loss_error = 0;
  double gradient_error = 0;  ///< of gradients and their global norm
  double weight_error = 0;
  /// In words, the first thing beyond its tolerance, in the order in which a step makes it:
  /// initial weights, then per step the loss, gradients from the head down, weights.
  std::optional<std::string> first_difference;

  bool passed() const noexcept { return !first_difference; }
};

/// A trace compared with itself shows whether its own updates are right.
/// @pre both have the same table and number of steps
MeshComparison compare(const MeshTrace& reference, const MeshTrace& other,
                       const Tolerances& tolerances);

}  // namespace fourfold::train
