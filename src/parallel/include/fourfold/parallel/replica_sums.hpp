// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/collective_recorder.hpp>

#include <memory>
#include <vector>

namespace fourfold::parallel {

/// Sums the gradients of parameters that several ranks of the tp axis hold and of which each has
/// only an addend (tensor_cut.hpp, gradient_is_partial), over exactly the ranks that hold them.
/// After it their gradients are the same bits on all holders. Others are left alone.
class ReplicaSums {
 public:
  /// Collective over `tp`. @param tp, parameters  borrowed
  ReplicaSums(comm::Communicator& tp, const model::Parameters& parameters, bool sequence_parallel);

  /// Sums what a part has of matrices, a unit in all its parts, or a unit of vectors, ordered on
  /// `stream`. Collective over the holders.
  void sum_matrices(model::WeightGroup part, device::StreamRef stream);
  void sum_matrices_of_unit(int unit, device::StreamRef stream);
  void sum_vectors(int unit, device::StreamRef stream);

  /// The communicators that sum: none, tp, that of the key/value heads.
  std::vector<comm::Communicator*> holders() const;

  /// Notes sums over a part of `tp` from here on: those over all of it are noted where it notes
  /// them. @param recorder  borrowed; or nullptr
  void record_into(CollectiveRecorder* recorder) noexcept;

 private:
  struct Addend {
    model::WeightGroup part;  ///< of vectors: their unit
    bool matrix;
    comm::Communicator* holders;
    TensorView gradient;
  };
  template <class Belongs>
  void sum(device::StreamRef stream, const Belongs& belongs);
  void add_matrix(const model::Parameters& parameters, Range flat, comm::Communicator& holders);

  /// Of a key/value head; null when it is all of tp.
  std::unique_ptr<RecordedCommunicator> sharers_;
  std::vector<Addend> addends_;
};

/// Ranges of the flat memory that this rank answers for when each logical element is to be counted
/// once over the tp and pp axes: what it holds alone, and what it is the first holder of (never a
/// second copy of a tied embedding). In order;
/// neighbours are merged with the gap between them, which is zero.
std::vector<Range> counted_once(const model::Parameters& parameters, int tp, int rank);

}  // namespace fourfold::parallel
