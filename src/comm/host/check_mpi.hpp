// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>

namespace fourfold::comm {

/// Turns a failed MPI call into a SystemError (exit code node_fault) with MPI's own text and the
/// place of the call. Every MPI call of this room goes through it, except in destructors.
void check_mpi(int rc, std::source_location where = std::source_location::current());

}  // namespace fourfold::comm
