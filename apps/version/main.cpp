// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "version.hpp"

#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>

namespace {

using fourfold::ExitCode;

void print_for_people(const fourfold::BuildFacts& facts) {
  fmt::print("fourfold {}\n", facts.version);
  fmt::print("  commit      {}\n", facts.commit);
  fmt::print("  compiler    {}\n", facts.compiler);
  fmt::print("  build       {}{}\n", facts.build_type,
             facts.native ? ", for the CPU of the machine that built it" : "");
  fmt::print("  contracts   {}\n", facts.contracts ? "on" : "off");
  if (!facts.sanitizers.empty()) {
    fmt::print("  sanitizers  {}\n", facts.sanitizers);
  }
  fmt::print("  libraries\n");
  for (const fourfold::LibraryFact& library : facts.libraries) {
    fmt::print("    {:<14} {}\n", library.name, library.version);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Shows version, commit, compiler, libraries and options of this build.",
                   "fourfold version"};
  bool json = false;
  command.add_flag("--json", json, "Print one JSON object, for programs to read");
  command.footer("\nEXIT CODES\n" + fourfold::program::exit_codes_table({}));
  return fourfold::program::run("fourfold version", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    if (json) {
      fmt::print("{}\n", fourfold::version::to_json(fourfold::build_facts()));
    } else {
      print_for_people(fourfold::build_facts());
    }
    return ExitCode::finished;
  });
}
