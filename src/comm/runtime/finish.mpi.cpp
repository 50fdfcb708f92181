// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "finish.mpi.hpp"

#include "watchdog/launch.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/process_identity.hpp>

#include <mpi.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <string_view>

namespace fourfold::comm {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

bool finalize_may_hang(const std::string& library) {
  constexpr std::string_view label = "MPICH Version:";
  const auto found = library.find(label);
  // Another PMI than the first speaks another language on the same file descriptor.
  if (found == std::string::npos || !has(library, "ch4:ucx") || has(library, "--with-pmi=pmi2") ||
      has(library, "--with-pmi=pmix")) {
    return false;
  }
  std::istringstream version(library.substr(found + label.size()));
  int major = 0;
  int minor = 0;
  char dot = 0;
  if (!(version >> major)) {
    return false;
  }
  version >> dot >> minor;
  return major < 4 || (major == 4 && minor == 0);
}

bool leave_process_manager() {
  const auto fd = number_in(environment_text("PMI_FD"));
  if (!fd || *fd < 0) {
    return false;
  }
  constexpr std::string_view farewell = "cmd=finalize\n";
  if (::write(*fd, farewell.data(), farewell.size()) != std::ssize(farewell)) {
    return false;
  }
  pollfd answer{.fd = *fd, .events = POLLIN, .revents = 0};
  std::array<char, 64> line{};
  return ::poll(&answer, 1, 5000) == 1 && ::read(*fd, line.data(), line.size()) > 0;
}

void finish_mpi(const std::string& library, bool over_network) {
  if (over_network && finalize_may_hang(library) && leave_process_manager()) {
    return;
  }
  if (MPI_Finalize() != MPI_SUCCESS) {
    log::local(log::Level::error, "MPI_Finalize failed (the results are complete)");
  }
}

}  // namespace fourfold::comm
