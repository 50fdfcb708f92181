// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mesh_walk.hpp"

#include <fourfold/train/mesh_verification.hpp>
#include <fourfold/train/update_rule.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::train {

/// Compares steps of a mesh with those of the reference, one after another: StepErrors says how.
class MeshComparer {
 public:
  /// @param optim  the reference's, of which the updates have to be
  MeshComparer(const runfile::OptimConfig& optim, const std::vector<model::ParameterSpec>& table,
               const Tolerances& tolerances);

  void compare_initial_weights(const ParameterValues& reference, const ParameterValues& other);

  /// @param start      what the other began the step with
  /// @param rounded    gradients that are the reference's but for rounding; nullptr: not known, and
  ///   nothing is measured in units of it
  void compare_step(const StepStart& start, const StepTrace& reference, const StepTrace& other,
                    const ParameterValues* rounded);

  bool has_difference() const noexcept { return result_.first_difference.has_value(); }
  /// Once after the last step. @param disagreements  of the other's ranks
  MeshComparison finish(const std::vector<std::string>& disagreements);

 private:
  /// Keeps the largest, and the words if it is beyond its tolerance.
  template <class Words>
  void note(double StepErrors::*kind, double tolerance, double error, const Words& words);
  void offend(std::string text);

  void compare_products(const StepTrace& trace, const char* whose);
  void compare_losses(const StepTrace& a, const StepTrace& b);
  void compare_gradients(const StepTrace& a, const StepTrace& b, const ParameterValues* rounded);
  void compare_gradient(std::size_t tensor, const std::vector<float>& a,
                        const std::vector<float>& b, double floor, double least);
  void compare_rounding(std::size_t tensor, const std::vector<float>& a,
                        const std::vector<float>& b, const std::vector<float>& rounded,
                        double share);
  /// Makes the update again with the reference bodies of clipping and optimizer: from the mesh's
  /// own gradients and its weights before it, with states that are kept here. A step whose
  /// gradients are not finite is one that changes nothing.
  void compare_weights(const StepStart& start, const StepTrace& b);
  /// Makes `weights` what this step's update makes of them.
  void update(std::size_t tensor, float scale, const std::vector<float>& gradient,
              std::vector<float>& weights);

  runfile::OptimConfig optim_;
  std::vector<model::ParameterSpec> table_;
  Tolerances tolerances_;
  UpdateRules rules_;
  std::vector<ParameterValues> states_;  ///< of each tensor, those that its rule keeps
  std::int64_t updates_ = 0;             ///< that changed something
  MeshComparison result_;
};

}  // namespace fourfold::train
