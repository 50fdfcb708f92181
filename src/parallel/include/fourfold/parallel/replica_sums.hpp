// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/model_config.hpp>
#include <fourfold/model/parameters.hpp>

#include <memory>
#include <vector>

namespace fourfold::parallel {

/// Sums the gradients of parameters that several ranks of the tp axis hold and of which each has
/// only an addend (tensor_cut.hpp, gradient_is_partial), over exactly the ranks that hold them.
/// After it their gradients are the same bits on all holders. Others are left alone.
class ReplicaSums {
 public:
  /// Collective over `tp`. @param tp, parameters  borrowed
  ReplicaSums(const model::ModelConfig& config, comm::Communicator& tp,
              const model::Parameters& parameters, bool sequence_parallel);

  /// Sums what `unit` has of matrices, or of vectors, ordered on `stream`. Collective over the
  /// holders.
  void sum_matrices(int unit, device::StreamRef stream) { sum(unit, true, stream); }
  void sum_vectors(int unit, device::StreamRef stream) { sum(unit, false, stream); }

 private:
  void sum(int unit, bool matrices, device::StreamRef stream);
  struct Addend {
    int unit;
    bool matrix;
    comm::Communicator* holders;
    TensorView gradient;
  };

  std::unique_ptr<comm::Communicator> sharers_;  ///< of a key/value head; null when it is all of tp
  std::vector<Addend> addends_;
};

/// Ranges of the flat memory that this rank answers for when each logical element is to be counted
/// once over the tp and pp axes: what it holds alone, and what it is the first holder of (never a
/// second copy of a tied embedding). In order;
/// neighbours are merged with the gap between them, which is zero.
std::vector<Range> counted_once(const model::ModelConfig& config,
                                const model::Parameters& parameters, int tp, int rank);

}  // namespace fourfold::parallel
