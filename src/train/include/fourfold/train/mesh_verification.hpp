// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whether a run computes the same on several meshes (`fourfold verify`). All ranks are threads of
/// this process, and nothing is written.
#pragma once

#include <fourfold/train/resolved_run.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::train {

/// Of attention, queries and keys of each head and call that are held against their operands: all
/// of them up to here, else as many, drawn at random.
inline constexpr std::int64_t most_attention_rows = 512;

/// A run on one mesh.
struct RunOnMesh : ResolvedRun {
  std::string name;  ///< for messages
};

/// The largest errors that pass, the same at every step. These are for f32.
struct Tolerances {
  double loss = 1e-5;
  double gradient = 1e-4;
  double rounding = 300;  ///< in units of rounding
  /// What a tensor's gradient counts as at least, in units of rounding. In f32 so much that the
  /// tolerance before decides where a gradient all but cancels.
  double least_gradient = 3e6;
  double weight = 1e-4;
  double product = 8;  ///< in units of rounding; the same in every precision
};

/// What sound meshes keep to when activations are of this type. Updates are f32 in all of them. In
/// 16 bits sums in another order differ by a hundredth of a tensor's gradient. Errors in units of
/// rounding of some hundred small models and meshes: benchmarks/results. A fault in f32 makes
/// thousands. What rounding makes of a mean over few tokens is more, as one over the square root of
/// their number: below 1024 tokens a step the tolerances of losses and gradients grow like that.
Tolerances tolerances_for(const runfile::RunConfig& config) noexcept;

/// The largest errors of a step, or of several.
///
/// With a the reference's numbers and b the other's, the error of a loss (or gradient norm) is
/// |b - a| / |a|; that of a tensor is |b - a| / |a| in the L2 norm, where |a| counts as at least
/// 1e-2 of what an equally large piece of all tensors has on average. In all gradients, and their
/// norm, it counts as at least so many times what rounding makes there (least_gradient). So
/// gradients that are zero but for rounding (of the key biases, which a softmax does not see), or
/// all but cancel (of a norm's weights), are held against the others, and against that.
///
/// In units of rounding the same |b - a| is held against how far rounding moves the gradient: with
/// r the gradient of a step that rounds in other ways (compare_meshes), |b - a| / |r - a|, of every
/// tensor, and of every row and column of every matrix. For a row or column |r - a|^2 is its own
/// plus what is usual: the average of the tensor's rows (columns), or the tensor's share of its
/// size if that is more; and for a tensor no less than the same share of its size as of all tensors
/// together. So one that rounding by chance hardly moved is not held against that. It finds what
/// the norm of a whole tensor hides: one column of thousands, and what goes wrong in tensors with
/// small gradients.
///
/// Weights after a step are not held against the reference's. Adam divides by the size of the
/// gradient, so where that is all but zero its rounding decides about the whole update, and two
/// sound meshes move apart. They are held against what the reference's optimizer, in its plain and
/// serial body, makes of this mesh's own gradients and its weights before the step: |b - expected|
/// as a share of |expected - before|, in the L2 norm, without what the rounding of weights to f32
/// can make. Gradients being compared at every step, nothing else can differ.
///
/// A product is held against its own operands, on the rank that makes it: sums of its rows and
/// columns with random signs against those that the operands make (matmul_sums.hpp), rows of
/// attention and of its gradients against rows written out plainly (attention_rows.hpp). So one
/// that goes wrong is found whatever becomes of it in the step, in 16 bits as in f32.
struct StepErrors {
  double loss = 0;
  double gradient = 0;  ///< of tensors and of their global norm
  double rounding = 0;  ///< of tensors, rows and columns, in units of rounding
  double weight = 0;
  double product = 0;  ///< of a product where it is made, in units of rounding
};

/// What one mesh gave beside the reference.
struct MeshComparison {
  bool same_initial_weights = false;  ///< bit for bit
  bool ranks_agree = false;           ///< those that should have the same bits
  StepErrors largest;                 ///< over all steps
  std::int64_t steps = 0;
  std::vector<double> losses;                 ///< of that mesh, per step
  std::vector<std::int64_t> differing_steps;  ///< those with something beyond its tolerance, from 1
  /// Those that both skip, because f16 overflows: of their gradients nothing is known.
  std::int64_t skipped_steps = 0;
  std::int64_t checked_products = 0;  ///< of all ranks and steps, and of the reference's repetition
  /// In words, the first thing beyond its tolerance, in the order in which a step makes it:
  /// initial weights, then per step products, the loss, gradients from the head down, weights.
  std::optional<std::string> first_difference;

  bool passed() const noexcept { return !first_difference; }
};

/// Called before each step, counted from 0, which the other's ranks are about to make or the
/// reference's; may be nothing.
using BeforeStep = std::function<void(bool of_reference, std::int64_t step)>;

/// Trains the reference for `steps` steps, and compares it with itself: ranks that disagree, and
/// weights that its gradients do not make.
/// @throws UserError as Trainer, about data and sizes; where there is nothing to compare:
/// (data_corrupt) when it diverges, (config) when all its steps overflow f16
MeshComparison train_reference(const RunOnMesh& reference, std::int64_t steps,
                               const Tolerances& tolerances, const BeforeStep& before_step = {});

/// Trains `other` for `steps` steps, and has the reference repeat each of them: from the weights
/// and the loss scale that the other begins it with. So no error is carried from one step into the
/// next, one tolerance holds at every step, and what is compared is the run itself with all that it
/// keeps between steps.
///
/// The reference repeats them in the other's precision, and once more rounding in other ways: in
/// f32 from weights that are each moved to a neighbouring number; in 16 bits with activations in
/// f32, from weights as 16 bits have them.
///
/// Every product is checked, of the mesh and of the reference that repeats its steps.
///
/// Memory: the other's run, the reference's twice, and 80 bytes per parameter, however many steps.
/// Deterministic.
/// @throws UserError as Trainer; (config) if the two have other tensors; (data_corrupt) when
/// training diverges, as the reference says too
MeshComparison compare_meshes(const RunOnMesh& reference, const RunOnMesh& other,
                              std::int64_t steps, const Tolerances& tolerances,
                              const BeforeStep& before_step = {});

}  // namespace fourfold::train
