// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

#include <algorithm>
#include <string>

namespace {

using fourfold::ExitCode;
namespace ckpt = fourfold::ckpt;

struct Verb {
  const char* name;
  const char* meaning;
  void (*describe)(CLI::App&, ckpt::Request&);
  ExitCode (*run)(const ckpt::Request&);
};

/// In the order in which help lists them.
constexpr Verb verbs[] = {
    {"info", "Show what a checkpoint holds, and where", ckpt::describe_info, ckpt::info},
    {"verify", "Check whether checkpoints are whole; name what is damaged", ckpt::describe_verify,
     ckpt::verify},
    {"repair-index", "Make a damaged index or manifest again from the payloads, with proof",
     ckpt::describe_repair_index, ckpt::repair_index},
    {"diff", "Compare two checkpoints, also of different meshes, tensor by tensor",
     ckpt::describe_diff, ckpt::diff},
    {"reshard", "Cut a checkpoint for another mesh, bit for bit; also under mpiexec",
     ckpt::describe_reshard, ckpt::reshard},
    {"merge", "Make one HDF5 file of it, with each tensor whole", ckpt::describe_merge,
     ckpt::merge},
    {"export", "Write the weights for other programs: Hugging Face transformers, llm.c",
     ckpt::describe_export, ckpt::export_model},
    {"import", "Make a checkpoint of the weights of other programs", ckpt::describe_import,
     ckpt::import_model},
    {"gc", "Remove old steps, and what dead jobs left", ckpt::describe_gc, ckpt::gc}};

/// What to do where memory is short names only what the verb has.
ExitCode run(const CLI::App& command, const ckpt::Request& request) {
  const CLI::App& parsed = *command.get_subcommands().front();
  if (parsed.get_option_no_throw("--memory") != nullptr) {
    fourfold::set_remedies(
        {.host_memory = "use a smaller --memory, or run it where there is more"});
  }
  return std::ranges::find(verbs, parsed.get_name(), &Verb::name)->run(request);
}

ExitCode look_at_checkpoints(int argc, char** argv) {
  CLI::App command{
      "Looks at checkpoints and cuts them anew, on any machine: it needs neither ranks nor a "
      "device nor the run file.",
      "fourfold ckpt"};
  command.require_subcommand(1);
  const std::string codes = "\nEXIT CODES\n" + fourfold::program::exit_codes_table(
                                                   {ExitCode::differs, ExitCode::data_corrupt,
                                                    ExitCode::cannot_write, ExitCode::config});
  command.footer(codes);
  ckpt::Request request;
  for (const Verb& verb : verbs) {
    CLI::App* const options = command.add_subcommand(verb.name, verb.meaning);
    verb.describe(*options, request);
    options->footer(codes);
  }
  const auto end = fourfold::program::parse(command, argc, argv);
  return end ? *end : run(command, request);
}

}  // namespace

int main(int argc, char** argv) {
  // All of it: what describes the options needs memory, too.
  return fourfold::program::run("fourfold ckpt", [&] { return look_at_checkpoints(argc, argv); });
}
