// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/device_options.hpp>
#include <fourfold/comm/watchdog.hpp>
#include <fourfold/device/device.hpp>

#include <memory>
#include <string>

namespace fourfold::comm {

/// How many ranks the launcher of this process (mpiexec, srun) says it started; 1 without one. Does
/// not start MPI: programs that may run on a login node ask before.
int launched_ranks();
/// Which of them it says this process is; 0 without one.
int launched_rank();

/// Starts MPI for this process and owns the world communicator. One per process, made first in
/// main(); whatever communicates is destroyed before it.
///
/// - Errors of MPI calls are returned to us (MPI_ERRORS_RETURN) and become SystemError; none kills
///   the process without our knowing.
/// - MPI_THREAD_FUNNELED: only the thread that made the runtime may use its communicators. All
///   progress is made by that thread while it waits, so no more is needed.
/// - The destructor finalizes MPI, which is collective. While an exception unwinds it does not: the
///   other ranks may be in the middle of something else and would hang; the main of the program
///   ends them all then, as set_rank_identity() told it.
class MpiRuntime {
 public:
  /// Collective over all processes that the launcher started.
  /// @throws UserError (exit code config) naming the right flag when the processes started as
  /// singletons although the launcher meant several ranks.
  MpiRuntime(int* argc, char*** argv);
  ~MpiRuntime();
  MpiRuntime(const MpiRuntime&) = delete;
  MpiRuntime& operator=(const MpiRuntime&) = delete;

  /// All ranks, on communicators of our own (never MPI_COMM_WORLD itself). Lives as long as this.
  Communicator& world() const noexcept;
  /// All ranks, for what lies in the memory of their devices (NCCL); on a host build world(). Lives
  /// as long as this. The first call takes this rank's device, by its number on its machine, and is
  /// collective.
  /// @throws UserError (config), on all ranks, where there are no devices for all of them
  Communicator& device_world(const DeviceOptions& options = {});
  /// For device::take_device(), where no communicator between devices is wanted.
  device::DevicePlace device_place(bool may_share) const noexcept;
  /// Name of the machine this rank runs on, as MPI gives it.
  const std::string& host() const noexcept;
  /// How many ranks run on this machine, this one included.
  int ranks_on_host() const noexcept;

  /// A node may have another build of the program: what its ranks send has another meaning then, or
  /// they compute something else, and nobody would notice. Collective; the first thing to do.
  /// @param build  of this process (build_name())
  /// @throws UserError (config) on all ranks, naming two builds and their nodes
  void require_one_build(const std::string& build) const;

  /// Watches this rank, and with it all, until the runtime ends (watchdog.hpp). Collective.
  void watch(WatchdogOptions options);

  /// Ends all ranks with `code`, from any state, 0.3 s after the call: a launcher still forwards
  /// what was written. Never returns.
  [[noreturn]] static void abort(ExitCode code) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fourfold::comm
