// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mesh_walk.hpp"
#include "update_replay.hpp"

#include <fourfold/train/mesh_verification.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace fourfold::train {

/// Compares steps of a mesh with those of the reference, one after another: StepErrors says how.
class MeshComparer {
 public:
  /// @param optim  the reference's, of which the updates have to be
  MeshComparer(const runfile::OptimConfig& optim, const std::vector<model::ParameterSpec>& table,
               const Tolerances& tolerances);
  MeshComparer(const MeshComparer&) = delete;  // the replay borrows
  MeshComparer& operator=(const MeshComparer&) = delete;

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
  void note(double StepErrors::*kind, double error, const Words& words);
  void offend(std::string text);

  void compare_products(const StepTrace& trace, const char* whose);
  void compare_losses(const StepTrace& a, const StepTrace& b);
  void compare_gradients(const StepTrace& a, const StepTrace& b, const ParameterValues* rounded);
  void compare_gradient(std::size_t tensor, const std::vector<float>& a,
                        const std::vector<float>& b, double floor, double least);
  void compare_rounding(std::size_t tensor, const std::vector<float>& a,
                        const std::vector<float>& b, const std::vector<float>& rounded,
                        double share);
  void compare_weights(const StepStart& start, const StepTrace& b);

  runfile::OptimConfig optim_;
  std::vector<model::ParameterSpec> table_;
  StepErrors tolerances_;
  double least_gradient_;
  UpdateReplay replay_;
  MeshComparison result_;
};

}  // namespace fourfold::train
