// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/program/command_line.hpp>

#include <fmt/format.h>

namespace fourfold::cli {

std::string help(std::span<const Verb> verbs) {
  std::string text =
      "NAME\n"
      "  fourfold - train transformer language models on one machine or a cluster\n"
      "\n"
      "SYNOPSIS\n"
      "  fourfold VERB [ARGUMENT ...]\n"
      "  fourfold help [VERB [SUBVERB | TABLE | KEY]]\n"
      "  fourfold --help | --version\n"
      "\n"
      "VERBS\n";
  for (const Verb& verb : verbs) {
    text += fmt::format("  {:<10} {}\n", verb.name, verb.summary);
  }
  text +=
      "  help       Show this page, or the page of a verb\n"
      "\n"
      "DESCRIPTION\n"
      "  Each verb is a program of its own, fourfold-VERB, which this one replaces itself with; so "
      "the\n"
      "  process that mpiexec or srun starts is the one that computes, and signals reach it. Verbs "
      "that\n"
      "  need several ranks are started by the launcher of your MPI.\n"
      "\n"
      "EXAMPLES\n"
      "  mpiexec -n 4 fourfold train run.toml                train on four ranks\n"
      "  fourfold train run.toml --dry-run                   check a run file without training\n"
      "  fourfold help train                                 all options of a verb\n"
      "  fourfold help train optim                           the keys of a table of the run file\n"
      "  fourfold help train learning_rate                   a key, by any trainer's name for it\n"
      "  fourfold help ckpt export                           all options of a verb's verb\n"
      "\n"
      "ENVIRONMENT\n"
      "  PAGER             shows a page that is longer than the terminal; default: less -FRX; "
      "empty or\n"
      "                    cat: none. A program and its words, not a line for a shell\n"
      "  COLUMNS           how wide help is where no terminal shows it; default: 100\n"
      "\n"
      "FILES\n"
      "  run.toml          what to train, on what, and how: written by you\n"
      "  checkpoint.dir    checkpoints; any of them restarts on another number of ranks\n"
      "  log.dir           metrics.jsonl, TensorBoard events, report.html\n"
      "  (checkpoint.dir and log.dir are keys of the run file)\n"
      "\n"
      "EXIT CODES\n";
  text += program::exit_codes_table(
      {ExitCode::data_corrupt, ExitCode::cannot_write, ExitCode::stopped_saved, ExitCode::config});
  return text;
}

}  // namespace fourfold::cli
