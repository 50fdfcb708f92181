// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace fourfold::program {

/// What a program has to leave behind about a failure: gets the exit code and the message.
using OnFailure = std::function<void(ExitCode code, const std::string& message)>;

/// Runs a program's body and turns what it throws into one message on stderr and an exit code
/// (docs/exit-codes.md):
///
/// - UserError: the message alone; it says what is wrong and what to do;
/// - SystemError: the message and the place that noticed it;
/// - out of memory: config, since a smaller run is the remedy;
/// - everything else, broken contracts among it: internal, with the request to report it.
///
/// With several ranks (fourfold/base/process_identity.hpp) an error of one ends them all, so that
/// nobody waits for a rank that is gone. Rank 0 speaks at once; another rank first waits a moment
/// that grows with its rank: when all fail for the same reason rank 0's message is the only one,
/// and a rank that fails alone is still heard, with "[rank r of N on host]" in front. Of ranks that
/// cannot end each other only rank 0 speaks.
///
/// @param name  how the program is called by users ("fourfold train"), put in front of the message
/// @param body  does the work and returns the code to exit with when nothing is thrown
/// @param on_failure  called once for what body throws, before the message is printed and the ranks
/// are ended: at once on rank 0, on another rank after its moment, so only if nobody has ended it
/// by then. What it throws itself is printed as a warning
int run(std::string_view name, const std::function<ExitCode()>& body,
        const OnFailure& on_failure = {});

/// Shows what is logged as information, too: for programs that work once and say what they did.
void enable_verbose_log();

/// Whether SIGHUP was ignored when the process began: `nohup` does that, so that a run outlives its
/// terminal. Libraries of MPI (libpsm2, UCX) put a handler in its place as they are loaded, so it
/// is asked before they are.
bool hangup_was_ignored() noexcept;

/// What hangup_was_ignored() answers is asked here, as the first that a program does.
void ask_about_hangup(int argc, char** argv, char** environment);

}  // namespace fourfold::program
