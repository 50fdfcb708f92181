// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "communicator/argument_checks.hpp"
#include "devices/device_world.hpp"
#include "finish.mpi.hpp"
#include "host/message_communicator.hpp"
#include "host/transport.mpi.hpp"
#include "watchdog/launch.hpp"

#include <fourfold/base/cores.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/comm/mpi_runtime.hpp>

#include <fcntl.h>
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace fourfold::comm {
namespace {

std::string host_name() {
  std::string text(MPI_MAX_PROCESSOR_NAME, '\0');
  int length = 0;
  check_mpi(MPI_Get_processor_name(text.data(), &length));
  text.resize(length);
  return text;
}

/// This rank among those of its machine.
device::DevicePlace find_host_place() {
  MPI_Comm host = MPI_COMM_NULL;
  device::DevicePlace place;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host));
  const CommHandle owner(host);
  check_mpi(MPI_Comm_rank(host, &place.local_rank));
  check_mpi(MPI_Comm_size(host, &place.ranks_on_host));
  return place;
}

/// UCX, under MPI, prints the stack of a crash from a handler that frees memory: a crash inside
/// malloc becomes a hang by that, which nobody ends before the job's time. The library installs it
/// when it is loaded.
void crash_at_once() {
#ifndef __SANITIZE_ADDRESS__  // which reports a crash itself
  for (const int number : {SIGSEGV, SIGILL, SIGFPE}) {
    std::signal(number, SIG_DFL);
  }
#endif
}

/// MPI_Abort asks the process manager, and waits for ever where that is gone: an srun that was told
/// of a failed node has left its step.
void end_soon(ExitCode code) noexcept {
  try {
    std::thread([code] {
      std::this_thread::sleep_for(std::chrono::seconds(5));
      std::_Exit(static_cast<int>(code));
    }).detach();
  } catch (const std::system_error&) {  // no room for a thread: then it is up to MPI_Abort
  }
}

/// MPICH prints "Abort(78) on node 0" and no reason, since it is told to leave that to the
/// program's main, which has given it by now.
void say_no_more() noexcept {
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nowhere >= 0) {
    ::dup2(nowhere, STDERR_FILENO);
    ::close(nowhere);
  }
}

}  // namespace

int launched_ranks() {
  return launch_of_this_process().size;
}

int launched_rank() {
  return launch_of_this_process().rank;
}

struct MpiRuntime::Impl {
  std::string host;
  device::DevicePlace place;
  std::unique_ptr<MpiProgress> progress;
  std::unique_ptr<MessageCommunicator> world;
  std::shared_ptr<Communicator> device_world;
  std::unique_ptr<Watchdog> watch;  ///< ends before what it watches
  int exceptions_at_start = std::uncaught_exceptions();
};

MpiRuntime::MpiRuntime(int* argc, char*** argv) : impl_(std::make_unique<Impl>()) {
  // The program's main has told what happened by the time it aborts.
  setenv("MPIR_CVAR_SUPPRESS_ABORT_MESSAGE", "1", 0);
  int provided = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
  crash_at_once();
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  int rank = 0;
  int size = 1;
  check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
  check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size));
  const Launch launch = launch_of_this_process();
  if (const auto problem = singleton_problem(launch, size, mpi_library())) {
    set_rank_identity({launch.rank, launch.size, host_name(), nullptr});
    MPI_Finalize();  // alone: nobody can hang
    throw UserError(ExitCode::config, *problem);
  }
  impl_->host = host_name();
  set_rank_identity({rank, size, impl_->host, size > 1 ? &MpiRuntime::abort : nullptr});
  log::set_thread_rank(rank, size);
  if (provided < MPI_THREAD_FUNNELED) {
    throw SystemError(ExitCode::config,
                      "this MPI cannot serve a program with threads (it offers less than "
                      "MPI_THREAD_FUNNELED); use one that was built with thread support");
  }
  impl_->place = size > 1 ? find_host_place() : device::DevicePlace{};
  // A launcher may bind each rank to cores of its own; then this yields a little early, which
  // costs nothing on a core that nobody else wants.
  impl_->progress = std::make_unique<MpiProgress>(ranks_on_host() > cores_allowed());
  impl_->world = std::make_unique<MessageCommunicator>(
      MpiTransport::duplicate(MPI_COMM_WORLD, *impl_->progress), "world", all_ranks(size));
}

MpiRuntime::~MpiRuntime() {
  if (std::uncaught_exceptions() > impl_->exceptions_at_start && impl_->world->size() > 1) {
    // Others may be waiting in an operation: the program's main ends them. MPI stays as it is, and
    // nothing is freed that it might still write to.
    Watchdog::announce_abort();
    impl_->watch.reset();
    std::ignore = impl_.release();
    return;
  }
  // UCX_TLS may take shared memory away from ranks of one host.
  const bool over_network =
      ranks_on_host() < impl_->world->size() || !environment_text("UCX_TLS").empty();
  impl_->device_world.reset();
  std::string library;
  try {
    library = mpi_library();
    world().barrier();
  } catch (const std::exception& error) {
    log::local(log::Level::error,
               format_message("while MPI was ended: {}", MadeLines{error.what()}));
  }
  impl_->watch.reset();
  impl_->world.reset();
  set_rank_identity({log::thread_rank(), 1, impl_->host, nullptr});
  finish_mpi(library, over_network);
}

void MpiRuntime::require_one_build(const std::string& build) const {
  const std::vector<std::string> builds = all_gather_text(world(), build);
  const std::vector<std::string> hosts = all_gather_text(world(), impl_->host);
  const auto other =
      std::ranges::find_if(builds, [&](const std::string& one) { return one != builds.front(); });
  if (other != builds.end()) {
    throw UserError(
        ExitCode::config,
        format_message("fourfold is {} on {} and {} on {} (ranks of one run must be alike); load "
                       "the same module on all nodes, and install anew where it differs",
                       builds.front(), hosts.front(), *other, hosts[other - builds.begin()]));
  }
}

void MpiRuntime::watch(WatchdogOptions options) {
  impl_->watch = std::make_unique<Watchdog>(*impl_->world, impl_->host, std::move(options));
}

Communicator& MpiRuntime::device_world(const DeviceOptions& options) {
  if (!impl_->device_world) {
    impl_->device_world =
        make_device_world(*impl_->world, impl_->host, device_place(options.may_share), options);
  }
  return *impl_->device_world;
}

device::DevicePlace MpiRuntime::device_place(bool may_share) const noexcept {
  device::DevicePlace place = impl_->place;
  place.may_share = may_share;
  return place;
}

Communicator& MpiRuntime::world() const noexcept {
  return *impl_->world;
}
const std::string& MpiRuntime::host() const noexcept {
  return impl_->host;
}
int MpiRuntime::ranks_on_host() const noexcept {
  return impl_->place.ranks_on_host;
}

void MpiRuntime::abort(ExitCode code) noexcept {
  Watchdog::announce_abort();
  // A launcher forwards what ranks write; aborting at once can outrun the reason. And who hears
  // of the abort may have something to put back.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  end_soon(code);
  say_no_more();
  MPI_Abort(MPI_COMM_WORLD, static_cast<int>(code));
  std::_Exit(static_cast<int>(code));
}

}  // namespace fourfold::comm
