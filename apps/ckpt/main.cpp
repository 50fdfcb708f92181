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
  const char* examples;
};

/// In the order in which help lists them.
constexpr Verb verbs[] = {
    {"info", "Show what a checkpoint holds, and where", ckpt::describe_info, ckpt::info,
     "  fourfold ckpt info runs/first               its newest step, and the others\n"
     "  fourfold ckpt info runs/first --tensors     each tensor, and where it lies\n"},
    {"verify", "Check whether checkpoints are whole; name what is damaged", ckpt::describe_verify,
     ckpt::verify,
     "  fourfold ckpt verify runs/first             sizes, index and manifest of every step\n"
     "  fourfold ckpt verify runs/* --deep          every byte of several runs\n"},
    {"repair-index", "Make a damaged index or manifest again from the payloads, with proof",
     ckpt::describe_repair_index, ckpt::repair_index,
     "  fourfold ckpt repair-index runs/first/checkpoints/step-000000200 --dry-run\n"
     "  fourfold ckpt repair-index runs/first/checkpoints/step-000000200\n"},
    {"diff", "Compare two checkpoints, also of different meshes, tensor by tensor",
     ckpt::describe_diff, ckpt::diff,
     "  fourfold ckpt diff runs/a runs/b\n"
     "  fourfold ckpt diff runs/a/checkpoints/step-000000200 runs/b --digests-only --json\n"},
    {"reshard", "Cut a checkpoint for another mesh, bit for bit; also under mpiexec",
     ckpt::describe_reshard, ckpt::reshard,
     "  fourfold ckpt reshard runs/first runs/wide --to dp=8,tp=2,zero=1\n"
     "  mpiexec -n 4 fourfold ckpt reshard runs/first runs/wide --to dp=8,tp=2 --memory 1G\n"},
    {"merge", "Make one HDF5 file of it, with each tensor whole", ckpt::describe_merge, ckpt::merge,
     "  fourfold ckpt merge runs/first weights.h5\n"},
    {"export", "Write the weights for other programs: Hugging Face transformers, llm.c",
     ckpt::describe_export, ckpt::export_model,
     "  fourfold ckpt export runs/first hf-model --format hf --dtype bf16\n"
     "  fourfold ckpt export runs/first model.bin --format llm.c\n"},
    {"import", "Make a checkpoint of the weights of other programs", ckpt::describe_import,
     ckpt::import_model,
     "  fourfold ckpt import hf-model runs/imported          a folder of transformers\n"
     "  fourfold ckpt import hf-model runs/imported --dry-run\n"},
    {"gc", "Remove old steps, and what dead jobs left", ckpt::describe_gc, ckpt::gc,
     "  fourfold ckpt gc runs/first --keep-last 3 --keep-every 1000 --dry-run\n"
     "  fourfold ckpt gc runs/first --keep-last 3 --keep-best 1\n"}};

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
  command.footer(
      "\nEXAMPLES\n"
      "  fourfold help ckpt reshard                  the page of a verb, with its examples\n"
      "  fourfold ckpt info runs/first\n" +
      codes);
  ckpt::Request request;
  for (const Verb& verb : verbs) {
    CLI::App* const options = command.add_subcommand(verb.name, verb.meaning);
    verb.describe(*options, request);
    options->footer(std::string("\nEXAMPLES\n") + verb.examples + codes);
  }
  const auto end = fourfold::program::parse(command, argc, argv);
  return end ? *end : run(command, request);
}

}  // namespace

int main(int argc, char** argv) {
  // All of it: what describes the options needs memory, too.
  return fourfold::program::run("fourfold ckpt", [&] { return look_at_checkpoints(argc, argv); });
}
