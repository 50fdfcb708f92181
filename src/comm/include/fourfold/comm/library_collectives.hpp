// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <memory>
#include <string>

namespace fourfold::comm {

/// The collectives of the MPI library itself (MPI_Allreduce, ...): what ours are measured against,
/// and used for nothing else. Every call blocks inside MPI, is collective and takes equal counts of
/// all ranks.
class LibraryCollectives {
 public:
  /// On the ranks of `group`, in its order. Collective over it; blocks.
  /// @pre `group` is MpiRuntime::world() or was split from it
  explicit LibraryCollectives(Communicator& group);
  ~LibraryCollectives();
  LibraryCollectives(const LibraryCollectives&) = delete;
  LibraryCollectives& operator=(const LibraryCollectives&) = delete;

  /// Whether MPI has arithmetic for the type: it has none for bf16 and f16.
  static bool can_reduce(DType dtype) noexcept;
  /// "MPICH 4.0.2": the library that this process runs with.
  static std::string library();

  /// In place. @pre can_reduce(data.dtype())
  void all_reduce(TensorView data, ReduceOp op);
  /// @pre recv has size() times the elements of send
  void all_gather(ConstTensorView send, TensorView recv);
  /// @pre can_reduce(send.dtype()); send has size() times the elements of recv
  void reduce_scatter(ConstTensorView send, TensorView recv, ReduceOp op);
  /// @pre send and recv have the same elements, a multiple of size()
  void all_to_all(ConstTensorView send, TensorView recv);
  /// Sends to `target` and receives from `source`.
  void exchange(ConstTensorView send, int target, TensorView recv, int source);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fourfold::comm
