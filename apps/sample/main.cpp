// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "continuation.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/same_tokens.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/text_sampler.hpp>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::sample_program {
namespace {

struct Arguments {
  std::string checkpoint;
  std::string prompt;
  std::string tokenizer;
  bool allow_mixed_tokenizers = false;
  std::vector<std::string> said;  ///< all of that, as the user said it on this rank
  train::SamplingOptions sampling;
};

void describe(CLI::App& command, Arguments& arguments) {
  program::add_checkpoint_option(command, arguments.checkpoint);
  command
      .add_option(
          "--prompt", arguments.prompt,
          "Text to go on from. Of one that is longer than the model's context the end counts")
      ->required();
  command.add_option("--tokens", arguments.sampling.tokens, "The most tokens to draw")
      ->capture_default_str()
      ->check(program::whole_number(0));
  command
      .add_option("--temperature", arguments.sampling.temperature,
                  "Below 1 sharper, above 1 wilder; 0 always takes the likeliest token")
      ->capture_default_str()
      ->check(program::number_between(0, 1000));
  command
      .add_option("--top-k", arguments.sampling.top_k,
                  "Draw among the k likeliest tokens only; 0: among all")
      ->capture_default_str()
      ->check(program::whole_number(0));
  command.add_option("--seed", arguments.sampling.seed, "Same seed and prompt, same text")
      ->capture_default_str()
      ->check(program::whole_number(0));
  command.add_option("--tokenizer", arguments.tokenizer,
                     "Tokenizer; default: the one of the run file (data.tokenizer)");
  command.add_flag("--allow-mixed-tokenizers", arguments.allow_mixed_tokenizers,
                   "Accept another tokenizer than the training data's");
  command.footer(
      "\nEXAMPLES\n"
      "  fourfold sample runs/first --prompt \"And the king said\" --tokens 100\n"
      "  fourfold sample runs/first --prompt \"\" --temperature 0.7 --top-k 40 --seed 7\n"
      "\nEXIT CODES\n" +
      program::exit_codes_table({ExitCode::data_corrupt, ExitCode::config}));
}

/// The tokens of the prompt; an empty prompt starts after an end of text.
std::vector<std::int32_t> prompt_tokens(data::Tokenizer& tokenizer, const std::string& prompt) {
  std::vector<std::int32_t> tokens;
  tokenizer.encode(prompt, tokens);
  if (tokens.empty()) {
    if (!tokenizer.end_of_text()) {
      throw UserError(ExitCode::config,
                      "--prompt is empty (this tokenizer has no end-of-text token to "
                      "start from); give at least one character");
    }
    tokens.push_back(*tokenizer.end_of_text());
  }
  return tokens;
}

/// That of the training data, which may have been moved since.
std::unique_ptr<data::Tokenizer> trained_tokenizer(const std::string& named,
                                                   const io::Checkpoint& checkpoint) {
  try {
    return data::open_tokenizer(named);
  } catch (const UserError& error) {
    throw UserError(
        error.code(),
        format_message(
            "the tokenizer of {} cannot be used ({}); say where it is now with --tokenizer",
            checkpoint.path().string(), error.what()));
  }
}

ExitCode sample(Arguments& arguments, int argc, char** argv) {
  comm::MpiRuntime mpi(&argc, &argv);
  mpi.require_one_build(build_name());
  train::require_same_on_ranks(arguments.said, mpi.world());
  const auto checkpoint = train::open_named_checkpoint(arguments.checkpoint, mpi.world());
  comm::Mesh mesh(comm::resolve_mesh({.dp = 0}, mpi.world().size()), mpi.device_world());
  const kernels::Runtime kernels;
  train::SavedModel model(checkpoint, 1, mesh);
  if (arguments.tokenizer.empty() &&
      model.config().data.tokenizer == runfile::unknown_tokenizer_name) {
    throw UserError(
        ExitCode::config,
        format_message(
            "{} does not say which tokenizer its model was trained with (it was imported "
            "without one, or its token files have no record); name it with --tokenizer",
            checkpoint.path().string()));
  }
  const auto tokenizer = arguments.tokenizer.empty()
                             ? trained_tokenizer(model.config().data.tokenizer, checkpoint)
                             : data::open_tokenizer(arguments.tokenizer);
  if (tokenizer->vocab_size() > model.config().model.vocab) {
    throw UserError(
        ExitCode::config,
        format_message(
            "the tokenizer {} has {} tokens, but the model was trained with model.vocab = {} "
            "(its data were made with another one); name that one with --tokenizer",
            tokenizer->description(), tokenizer->vocab_size(), model.config().model.vocab));
  }
  train::refuse_foreign_tokenizer(
      checkpoint, *tokenizer,
      arguments.allow_mixed_tokenizers || model.config().data.allow_mixed_tokenizers);
  const auto prompt = prompt_tokens(*tokenizer, arguments.prompt);
  arguments.sampling.stop_token = tokenizer->end_of_text();
  arguments.sampling.vocab = tokenizer->vocab_size();
  if (const std::int64_t context = model.config().model.context;
      std::ssize(prompt) > context && mpi.world().rank() == 0) {
    log::warning(format_message(
        "the prompt has {} tokens, and model.context is {}: the model sees the last {}",
        prompt.size(), context, context));
  }
  if (mpi.world().rank() != 0) {
    return ExitCode::finished;
  }
  program::print_data(arguments.prompt);
  Continuation continuation(*tokenizer, prompt);
  const auto emit = [&](std::int32_t token) {
    program::print_data(continuation.next(token));
    std::fflush(stdout);
  };
  train::continue_text(model.stage(), model.config().model.context, prompt, arguments.sampling,
                       emit, {});
  program::print_data(continuation.finish() + "\n");
  return ExitCode::finished;
}

}  // namespace
}  // namespace fourfold::sample_program

int main(int argc, char** argv) {
  CLI::App command{
      "Continues a text with a trained model: draws token after token and prints them as they "
      "come. One process is enough.",
      "fourfold sample"};
  fourfold::sample_program::Arguments arguments;
  fourfold::sample_program::describe(command, arguments);
  return fourfold::program::run("fourfold sample", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    arguments.said = fourfold::program::said_by(command);
    return fourfold::sample_program::sample(arguments, argc, argv);
  });
}
