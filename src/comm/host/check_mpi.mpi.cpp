// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check_mpi.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <mpi.h>

#include <string>

namespace fourfold::comm {

void check_mpi(int rc, std::source_location where) {
  if (rc == MPI_SUCCESS) {
    return;
  }
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(rc, text.data(), &length) != MPI_SUCCESS) {
    length = 0;
  }
  text.resize(length);
  throw SystemError(ExitCode::node_fault,
                    format_message("an MPI call failed at {}:{} (error {}: {})", where.file_name(),
                                   where.line(), rc, text),
                    where);
}

}  // namespace fourfold::comm
