// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

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

/// That of this rank.
int runtime_thread_count();

/// "Kokkos 4.6.1 (Serial)"
std::string kokkos_description();

}  // namespace fourfold::kernels
