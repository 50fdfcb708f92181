// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace fourfold::comm {

/// For programs whose ranks are threads, or that have none: each of several processes would do all
/// of the work. Asks the launcher's variables; MPI is not needed.
/// @param program      for the message: "fourfold verify"
/// @param environment  reads a variable of the environment; nullptr when it is not set
/// @throws UserError (config) when a launcher has started this process as one of several
void require_single_process(const std::string& program,
                            const std::function<const char*(const char* name)>& environment);

}  // namespace fourfold::comm
