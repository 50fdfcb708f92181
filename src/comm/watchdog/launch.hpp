// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fourfold::comm {

/// All of `text` as a number; nothing: it is none.
std::optional<int> number_in(std::string_view text);

/// What the launcher of this process says about the ranks it started.
struct Launch {
  int rank = 0;
  int size = 1;
  std::string variable;  ///< where the size was found; empty: no launcher
};
Launch launch_of_this_process();

/// Why an MPI of one rank is wrong here, and what to type instead; nothing when it is right.
/// @param mpi_library  the text of MPI_Get_library_version
std::optional<std::string> singleton_problem(const Launch& launch, int mpi_size,
                                             const std::string& mpi_library);

}  // namespace fourfold::comm
