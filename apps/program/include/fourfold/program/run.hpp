// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <functional>
#include <string_view>

namespace fourfold::program {

/// Runs a program's body and turns what it throws into one message on stderr and an exit code
/// (docs/exit-codes.md):
///
/// - UserError: the message alone; it says what is wrong and what to do;
/// - SystemError: the message and the place that noticed it;
/// - out of memory: config, since a smaller run is the remedy;
/// - everything else, broken contracts among it: internal, with the request to report it.
///
/// @param name  how the program is called by users ("fourfold train"), put in front of the message
/// @param body  does the work and returns the code to exit with when nothing is thrown
/// @param on_failure  called with the code after the message is out, before it is returned. A
/// program of several ranks
///                    ends the others here; what it throws is not caught
int run(std::string_view name, const std::function<ExitCode()>& body,
        const std::function<void(ExitCode)>& on_failure = {});

}  // namespace fourfold::program
