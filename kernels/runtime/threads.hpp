// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fourfold::kernels {

/// Makes OpenMP (and so oneDNN) use the Runtime's number of threads in the calling thread. OpenMP
/// keeps that number per host thread, and ranks may be threads of one process, so every product
/// asks for it.
void use_runtime_threads();

/// Kokkos ends the process when it cannot read KOKKOS_NUM_THREADS, or says nothing that a user
/// could act on. @throws UserError (config)
void check_kokkos_threads();

/// Threads of a rank by OMP_NUM_THREADS: one where it is not set, while OpenMP itself would take
/// every core, as it also does for what it cannot read. @throws UserError (config)
int threads_from_environment();

/// What only a *.kokkos.cpp can tell: those are compiled by nvcc too, which cannot read fmt.
struct KokkosFacts {
  int version = 0;  ///< 10000 major + 100 minor + patch
  const char* execution_space = "";
  int threads = 1;  ///< of this rank
};
KokkosFacts kokkos_facts();

}  // namespace fourfold::kernels
