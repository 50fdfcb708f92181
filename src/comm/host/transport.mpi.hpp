// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport.hpp"

#include <fourfold/base/unique_handle.hpp>

#include <mpi.h>

#include <memory>
#include <source_location>
#include <span>
#include <string>

namespace fourfold::comm {

struct CommTraits {
  using native_type = MPI_Comm;
  static MPI_Comm null() noexcept { return MPI_COMM_NULL; }
  static void close(MPI_Comm comm) noexcept;
};
using CommHandle = UniqueHandle<CommTraits>;

/// Everything in flight of an MPI process. MPI makes progress only inside its calls, and MPICH's
/// own waits spin without giving the processor away: with more ranks than cores an all_reduce of 8
/// bytes then takes milliseconds. So nothing here blocks inside MPI; pause() yields instead.
class MpiProgress : public Progress {
 public:
  /// @param oversubscribed  more ranks than cores on this machine: yield at once instead of
  /// spinning
  ///                 for a while
  explicit MpiProgress(bool oversubscribed) : spins_(oversubscribed ? 0 : 200) {}
  /// Until `request` is complete.
  void finish(MPI_Request request, const std::string& what);

 protected:
  std::uint64_t changes() override { return 0; }
  void pause(std::uint64_t seen, const std::string& what) override;

 private:
  int spins_;
  int spun_ = 0;
};

/// Messages over one communicator of our own.
class MpiTransport : public Transport {
 public:
  /// Takes the communicator. With MPI_COMM_NULL it is a group of this rank alone.
  MpiTransport(CommHandle comm, MpiProgress& progress);
  /// A duplicate of `comm`. Collective.
  static std::unique_ptr<MpiTransport> duplicate(MPI_Comm comm, MpiProgress& progress);

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  int tags() const noexcept override { return tags_; }
  Progress& progress() noexcept override { return progress_; }
  std::unique_ptr<TransferBatch> batch() override;
  std::unique_ptr<Transport> subgroup(std::span<const int> members,
                                      const std::string& name) override;
  std::int64_t memory_domain() const override;
  std::optional<SharedMemory> make_memory(std::size_t bytes, MemoryOffer& offer) override {
    return make_process_memory(bytes, offer);
  }
  std::optional<SharedMemory> find_memory(std::size_t bytes, const MemoryOffer& offer) override {
    return find_process_memory(bytes, offer);
  }
  bool prefers_shared_memory() const noexcept override { return true; }

 private:
  CommHandle comm_;
  MpiProgress& progress_;
  int rank_ = 0;
  int size_ = 1;
  int tags_;
};

/// Turns a failed MPI call into a SystemError (exit code node_fault) with MPI's own text and the
/// place of the call. Every MPI call of this room goes through it, except in destructors.
void check_mpi(int rc, std::source_location where = std::source_location::current());

/// A communicator of the ranks `members` of `parent`, in this order. Collective over them.
MPI_Comm comm_of(MPI_Comm parent, std::span<const int> members);

/// The text of MPI_Get_library_version.
std::string mpi_library();

}  // namespace fourfold::comm
