// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fourfold::comm {

/// Whether MPI_Finalize of this library deadlocks over a network. MPICH up to 4.0 on UCX: a rank
/// that has flushed its connections waits for the process manager in a blocking read, while others
/// still need its answers to flush theirs (mended in 4.1, pmodels/mpich #6596). With 8 ranks over
/// TCP it is 4 runs of 5, and neither barriers nor waiting before it make it safe.
/// @param library  the text of MPI_Get_library_version
bool finalize_may_hang(const std::string& library);

/// Takes leave of the process manager as MPI_Finalize would, and of nobody else: one line of the
/// PMI-1 protocol and its answer. After it this process may exit without MPI_Finalize and is not
/// taken for one that died. Returns whether that was done; there may be nobody to tell it to.
bool leave_process_manager();

/// Ends MPI when all ranks are done. Collective.
/// @param over_network  some ranks do not share this rank's memory
void finish_mpi(const std::string& library, bool over_network);

}  // namespace fourfold::comm
