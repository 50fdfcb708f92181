// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "version.hpp"

#include <fourfold/program/command_line.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>

namespace {

using fourfold::ExitCode;

void print_for_people(const fourfold::BuildFacts& facts) {
  fourfold::program::print("fourfold {}\n", facts.version);
  fourfold::program::print("  commit      {}\n", facts.commit);
  fourfold::program::print("  compiler    {}\n", facts.compiler);
  fourfold::program::print("  build       {}{}\n", facts.build_type,
                           facts.native ? ", for the CPU of the machine that built it" : "");
  fourfold::program::print("  contracts   {}\n", facts.contracts ? "on" : "off");
  if (!facts.sanitizers.empty()) {
    fourfold::program::print("  sanitizers  {}\n", facts.sanitizers);
  }
  fourfold::program::print("  libraries\n");
  for (const fourfold::LibraryFact& library : facts.libraries) {
    fourfold::program::print("    {:<14} {}\n", library.name, library.version);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Shows version, commit, compiler, libraries and options of this build.",
                   "fourfold version"};
  bool json = false;
  command.add_flag("--json", json, "Print one JSON object, for programs to read");
  command.footer(
      "\nEXAMPLES\n"
      "  fourfold version            for a report of a bug\n"
      "  fourfold version --json     for programs to read\n"
      "\nEXIT CODES\n" +
      fourfold::program::exit_codes_table({}));
  return fourfold::program::run("fourfold version", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    if (json) {
      fourfold::program::print_text(fourfold::version::to_json(fourfold::build_facts()) + "\n");
    } else {
      print_for_people(fourfold::build_facts());
    }
    return ExitCode::finished;
  });
}
