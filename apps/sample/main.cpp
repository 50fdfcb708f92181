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

namespace {

using fourfold::ExitCode;

struct Arguments {
  std::string checkpoint;
  std::string prompt;
  std::string tokenizer;
  bool allow_mixed_tokenizers = false;
  std::vector<std::string> said;  ///< all of that, as the user said it on this rank
  fourfold::train::SamplingOptions sampling;
};

void describe(CLI::App& command, Arguments& arguments) {
  fourfold::program::add_checkpoint_option(command, arguments.checkpoint);
  command
      .add_option(
          "--prompt", arguments.prompt,
          "Text to go on from. Of one that is longer than the model's context the end counts")
      ->required();
  command.add_option("--tokens", arguments.sampling.tokens, "The most tokens to draw")
      ->capture_default_str()
      ->check(fourfold::program::whole_number(0));
  command
      .add_option("--temperature", arguments.sampling.temperature,
                  "Below 1 sharper, above 1 wilder; 0 always takes the likeliest token")
      ->capture_default_str()
      ->check(fourfold::program::number_between(0, 1000));
  command
      .add_option("--top-k", arguments.sampling.top_k,
                  "Draw among the k likeliest tokens only; 0: among all")
      ->capture_default_str()
      ->check(fourfold::program::whole_number(0));
  command.add_option("--seed", arguments.sampling.seed, "Same seed and prompt, same text")
      ->capture_default_str()
      ->check(fourfold::program::whole_number(0));
  command.add_option("--tokenizer", arguments.tokenizer,
                     "Tokenizer; default: the one of the run file (data.tokenizer)");
  command.add_flag("--allow-mixed-tokenizers", arguments.allow_mixed_tokenizers,
                   "Accept another tokenizer than the training data's");
  command.footer("\nEXIT CODES\n" +
                 fourfold::program::exit_codes_table({ExitCode::data_corrupt, ExitCode::config}));
}

/// The tokens of the prompt; an empty prompt starts after an end of text.
std::vector<std::int32_t> prompt_tokens(fourfold::data::Tokenizer& tokenizer,
                                        const std::string& prompt) {
  std::vector<std::int32_t> tokens;
  tokenizer.encode(prompt, tokens);
  if (tokens.empty()) {
    if (!tokenizer.end_of_text()) {
      throw fourfold::UserError(ExitCode::config,
                                "--prompt is empty (this tokenizer has no end-of-text token to "
                                "start from); give at least one character");
    }
    tokens.push_back(*tokenizer.end_of_text());
  }
  return tokens;
}

/// That of the training data, which may have been moved since.
std::unique_ptr<fourfold::data::Tokenizer> trained_tokenizer(
    const std::string& named, const fourfold::io::Checkpoint& checkpoint) {
  try {
    return fourfold::data::open_tokenizer(named);
  } catch (const fourfold::UserError& error) {
    throw fourfold::UserError(
        error.code(),
        fourfold::format_message(
            "the tokenizer of {} cannot be used ({}); say where it is now with --tokenizer",
            checkpoint.path().string(), error.what()));
  }
}

ExitCode sample(Arguments& arguments, int argc, char** argv) {
  fourfold::comm::MpiRuntime mpi(&argc, &argv);
  mpi.require_one_build(fourfold::build_name());
  fourfold::train::require_same_on_ranks(arguments.said, mpi.world());
  const auto checkpoint = fourfold::train::open_named_checkpoint(arguments.checkpoint, mpi.world());
  fourfold::comm::Mesh mesh(fourfold::comm::resolve_mesh({.dp = 0}, mpi.world().size()),
                            mpi.device_world());
  const fourfold::kernels::Runtime kernels;
  fourfold::train::SavedModel model(checkpoint, 1, mesh);
  if (arguments.tokenizer.empty() &&
      model.config().data.tokenizer == fourfold::runfile::unknown_tokenizer_name) {
    throw fourfold::UserError(
        ExitCode::config,
        fourfold::format_message(
            "{} does not say which tokenizer its model was trained with (it was imported "
            "without one, or its token files have no record); name it with --tokenizer",
            checkpoint.path().string()));
  }
  const auto tokenizer = arguments.tokenizer.empty()
                             ? trained_tokenizer(model.config().data.tokenizer, checkpoint)
                             : fourfold::data::open_tokenizer(arguments.tokenizer);
  if (tokenizer->vocab_size() > model.config().model.vocab) {
    throw fourfold::UserError(
        ExitCode::config,
        fourfold::format_message(
            "the tokenizer {} has {} tokens, but the model was trained with model.vocab = {} "
            "(its data were made with another one); name that one with --tokenizer",
            tokenizer->description(), tokenizer->vocab_size(), model.config().model.vocab));
  }
  fourfold::train::refuse_foreign_tokenizer(
      checkpoint, *tokenizer,
      arguments.allow_mixed_tokenizers || model.config().data.allow_mixed_tokenizers);
  const auto prompt = prompt_tokens(*tokenizer, arguments.prompt);
  arguments.sampling.stop_token = tokenizer->end_of_text();
  arguments.sampling.vocab = tokenizer->vocab_size();
  if (const std::int64_t context = model.config().model.context;
      std::ssize(prompt) > context && mpi.world().rank() == 0) {
    fourfold::log::warning(fourfold::format_message(
        "the prompt has {} tokens, and model.context is {}: the model sees the last {}",
        prompt.size(), context, context));
  }
  if (mpi.world().rank() != 0) {
    return ExitCode::finished;
  }
  fourfold::program::print_data(arguments.prompt);
  fourfold::sample_program::Continuation continuation(*tokenizer, prompt);
  const auto emit = [&](std::int32_t token) {
    fourfold::program::print_data(continuation.next(token));
    std::fflush(stdout);
  };
  fourfold::train::continue_text(model.stage(), model.config().model.context, prompt,
                                 arguments.sampling, emit, {});
  fourfold::program::print_data(continuation.finish() + "\n");
  return ExitCode::finished;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{
      "Continues a text with a trained model: draws token after token and prints them as they "
      "come. One process is enough.",
      "fourfold sample"};
  Arguments arguments;
  describe(command, arguments);
  return fourfold::program::run("fourfold sample", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    arguments.said = fourfold::program::said_by(command);
    return sample(arguments, argc, argv);
  });
}
