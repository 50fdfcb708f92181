// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <CLI/CLI.hpp>

#include <initializer_list>
#include <optional>
#include <string>

namespace fourfold::program {

/// Parses the command line into what the options of `command` are bound to.
///
/// @return nothing when the program should go on. Otherwise what it should exit with at once:
/// finished after --help
///         (printed to stdout), usage after a wrong command line (said on stderr, with a pointer to
///         --help)
std::optional<ExitCode> parse(CLI::App& command, int argc, const char* const* argv);

/// The table of exit codes that every program's --help ends with: a line each, "  64  what it
/// means".
/// @param codes  those that the program can end with besides finished, usage and internal, which
/// all of them share
std::string exit_codes_table(std::initializer_list<ExitCode> codes);

/// Accepts numbers from `low` to `high`; unlike CLI11's own range, no nan.
CLI::Validator number_between(double low, double high);

}  // namespace fourfold::program
