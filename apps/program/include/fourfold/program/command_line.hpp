// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/error.hpp>

#include <CLI/CLI.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::program {

/// The keys of a run file whose last part is called so: "train.steps" for "steps".
using KeySearch = std::function<std::vector<std::string>(const std::string& last_part)>;

/// The part of a program's help that is called so, a table or a key of the run file; "" for none.
using HelpSearch = std::function<std::string(const std::string& part)>;

/// Parses the command line into what the options of `command` are bound to.
///
/// @return nothing when the program should go on. Otherwise what it should exit with at once:
/// finished after --help
///         (printed to stdout), usage after a wrong command line (said on stderr, with a pointer to
///         --help)
///
/// An option that has a position, too (add_checkpoint_option()) may stand anywhere among the
/// others. What no option and no verb is called is named in the order in which it was typed, with
/// what was probably meant.
/// @param keys  of programs that take a run file and --set; else nothing
/// @param parts  of help that can be asked for by name: "--help optim"
std::optional<ExitCode> parse(CLI::App& command, int argc, const char* const* argv,
                              const KeySearch& keys = {}, const HelpSearch& parts = {});

/// What the options of a parsed command line say, a line each, defaults included: "--cp = 2". For
/// ranks to compare; each has got its own command line.
std::vector<std::string> said_by(const CLI::App& command);

/// The table of exit codes that every program's --help ends with: a line each, "  64  what it
/// means".
/// @param codes  those that the program can end with besides finished, usage and internal, which
/// all of them share
std::string exit_codes_table(std::initializer_list<ExitCode> codes);

/// An option that takes one value each time it is given: "--set a=1 --set b=2".
/// @param type  of a value, for help
CLI::Option* add_repeatable_option(CLI::App& command, const std::string& name,
                                   std::vector<std::string>& values, const std::string& meaning,
                                   const std::string& type);

/// An option that takes the names of an enumeration.
template <NamedEnum Enum>
CLI::Option* add_named_option(CLI::App& command, const std::string& option, Enum& value,
                              const std::string& meaning) {
  return command
      .add_option_function<std::string>(
          option, [&value](const std::string& text) { value = *value_named<Enum>(text); }, meaning)
      ->check(CLI::IsMember(names_in(named_values<Enum>)));
}

/// Accepts whole numbers of at least `low` and at most `high`, and says so in words.
CLI::Validator whole_number(std::int64_t low,
                            std::int64_t high = std::numeric_limits<std::int32_t>::max());

/// Accepts what can be a place to write to; not ~, which only a shell reads as a home.
CLI::Validator place_to_write();

/// Accepts numbers from `low` to `high`; unlike CLI11's own range, no nan.
CLI::Validator number_between(double low, double high);

/// Accepts numbers above `bound`, but not `bound` itself, up to `high`; no nan.
CLI::Validator number_above(double bound, double high);

}  // namespace fourfold::program
