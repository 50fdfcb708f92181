// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How a checkpoint is named on a command line: the same in every program that reads one.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

namespace fourfold::program {

/// What a user may give, for help texts: train::checkpoints_named() finds what is meant.
inline constexpr const char* checkpoint_meaning =
    "A step (step-NNNNNNNNN), a folder of steps, or a run (its folder or run file)";
inline constexpr const char* checkpoint_words =
    "; RUN:best is the step of the lowest validation loss, RUN:latest the newest";

/// CHECKPOINT as the next positional argument, or --checkpoint; one of them is required.
/// @param more  what the program does with several steps, put after the meaning
/// @param value  a text, or a list of texts where several may be named
template <class Value>
CLI::Option* add_checkpoint_option(
    CLI::App& command, Value& value,
    const std::string& more = ", of which the newest step that holds together is taken") {
  return command
      .add_option("--checkpoint,CHECKPOINT", value, checkpoint_meaning + more + checkpoint_words)
      ->required()
      ->type_name("PATH");
}

/// The run file in a checkpoint, for programs that start where there is neither MPI nor HDF5: they
/// ask `fourfold ckpt info --run-file`, which has both.
/// @param path  a step folder, or a folder of steps or a run, of which the newest valid one is
/// taken
/// @throws UserError with what that program says, and its code
std::string run_file_in_checkpoint(const std::string& path);

}  // namespace fourfold::program
