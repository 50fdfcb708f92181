// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scratch_folder.hpp"

#include <fourfold/train/trainer.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace fourfold::test {

/// Of a run file, as --set has them: "mesh.tp=2".
using Options = std::vector<std::string>;
Options joined(Options first, const Options& more);
/// The degrees of all four axes.
Options mesh_options(const comm::MeshShape& mesh);

/// What a run did, as rank 0 saw it.
struct RunTrace {
  std::vector<double> losses;
  std::vector<double> norms;  ///< of the gradients
  std::vector<double> loss_scales;
  std::vector<std::int64_t> skipped_steps;  ///< up to each step
  std::vector<double> evaluations;
  std::vector<float> weights;  ///< masters, gaps included; of rank 0
  std::vector<float> moments;
  train::RunResult result;
};

/// Equal bits at every step and of what rank 0 holds at the end. @pre the runs made steps
void check_same_bits(const RunTrace& a, const RunTrace& b);
/// Each within a share of what is expected.
void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                 double relative);

/// A model of a few thousand parameters on a text of a few thousand tokens, in a folder of its own.
/// Global batch 8, so that 1, 2, 4 and 8 ranks fit; the data ends in a ragged sample.
class TinyRun {
 public:
  explicit TinyRun(const std::string& family);

  /// Trains on `ranks` threads to `steps`, resuming what `name` has saved.
  RunTrace train(int ranks, int steps, const std::string& name, const Options& overrides = {},
                 const std::vector<std::string>& allowed_changes = {}) const;

  /// The same on this mesh.
  RunTrace train_on(const comm::MeshShape& mesh, int steps, const std::string& name,
                    const Options& overrides = {}) const;

  /// The same, while a person asks for a stop during step `stop_step`.
  RunTrace train_to_stop(int ranks, int steps, const std::string& name, std::int64_t stop_step,
                         const Options& overrides = {}) const;

  /// The same as train(), with a look at the disk after each step, before anything of it is saved.
  RunTrace train_and_look(int ranks, int steps, const std::string& name, const Options& overrides,
                          const std::function<void(std::int64_t step)>& look) const;

  /// For whatever a test keeps beside the runs.
  std::filesystem::path folder() const { return folder_.path(); }
  std::string training_tokens() const { return (folder_ / "train").string(); }
  std::string held_back_tokens() const { return (folder_ / "held_back").string(); }
  std::filesystem::path checkpoints(const std::string& name) const;
  /// Lets the run `copy` resume what `name` has saved so far.
  void copy_checkpoints(const std::string& name, const std::string& copy) const;
  /// The state of a run's newest checkpoint, which is the same for equal bits on any mesh.
  std::string identity(const std::string& name) const;
  /// More tokens in the training file than the runs so far have seen.
  void grow_training_tokens() const;
  /// As many tokens as before, but others.
  void replace_training_tokens() const;
  void withdraw_stop(const std::string& name) const;

  runfile::EffectiveConfig config(int steps, const std::string& name,
                                  const Options& overrides = {}) const;

 private:
  RunTrace train(int ranks, const runfile::EffectiveConfig& effective,
                 const std::vector<std::string>& allowed_changes,
                 const std::function<void(std::int64_t step)>& on_step) const;

  std::string family_;
  harness::ScratchFolder folder_;
};

}  // namespace fourfold::test
