// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/enum_name.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/runfile/run_config.hpp>

namespace fourfold::ckpt {
namespace {

/// What both directions have.
/// @param and_else  what --format is when it is left out
/// @return --format
CLI::Option* add_shared_options(CLI::App& verb, Request& request,
                                const std::string& and_else = "") {
  CLI::Option* const option =
      verb.add_option("--format", request.format,
                      "hf: a folder with config.json and safetensors, as transformers has them; "
                      "llm.c: a .bin file of its GPT-2" +
                          and_else)
          ->check(CLI::IsMember({"hf", "llm.c"}))
          ->type_name("FORMAT");
  add_memory_option(verb, request.memory_bytes, 96, "The most memory of the process");
  verb.add_flag("--dry-run", request.dry_run, "Say what would be written, and write nothing");
  program::add_progress_option(verb, request.progress);
  return option;
}

}  // namespace

void describe_export(CLI::App& verb, Request& request) {
  program::add_checkpoint_option(verb, request.checkpoint);
  verb.add_option("TO", request.to, "Folder (hf) or file (llm.c) to create")
      ->required()
      ->check(program::place_to_write())
      ->type_name("");
  verb.add_option("--dtype", request.dtype, "Type of the weights; they are f32 in a checkpoint")
      ->check(CLI::IsMember(names_in(runfile::stored_dtypes)))
      ->capture_default_str()
      ->type_name("DTYPE");
  verb.add_option("--shard-size", request.shard_bytes,
                  "hf: largest size of a file, such as 500MB or 2GiB")
      ->transform(CLI::AsSizeValue(true))
      ->check(CLI::Validator(
          [](const std::string& bytes) -> std::string {
            std::uint64_t number = 0;
            constexpr std::uint64_t least = 10'000;
            constexpr std::uint64_t most = std::uint64_t{1} << 50;  // -1 comes out above
            const bool is_size = CLI::detail::lexical_cast(bytes, number);
            return is_size && least <= number && number <= most ? ""
                                                                : "is no size from 10kB to 1PiB";
          },
          ""))
      ->default_str("5GB")
      ->type_name("SIZE");
  verb.add_option("--vocab-multiple", request.vocab_multiple,
                  "Fill the vocabulary with rows of zeros up to a multiple; 0: hf 1, llm.c 128")
      ->check(program::whole_number(0, 1 << 20))
      ->capture_default_str()
      ->type_name("N");
  verb.add_option("--tokenizer", request.tokenizer,
                  "hf: tokenizer to write beside the model, as for data.tokenizer; none: none. "
                  "Default: data.tokenizer of the run")
      ->type_name("NAME");
  verb.add_flag("--allow-mixed-tokenizers", request.allow_mixed_tokenizers,
                "Accept another tokenizer than the training data's");
  add_shared_options(verb, request)->required();
}

void describe_import(CLI::App& verb, Request& request) {
  verb.add_option("FROM", request.foreign,
                  "hf: a folder with config.json and model.safetensors, or files with an index; "
                  "llm.c: a .bin file")
      ->required()
      ->type_name("");
  verb.add_option("TO", request.to, "Folder of steps to begin, with step 0")
      ->required()
      ->check(program::place_to_write())
      ->type_name("");
  const CLI::Validator rows = program::whole_number(0, 1'000'000'000);
  verb.add_option("--vocab", request.vocab,
                  "Keep the first N rows of the vocabulary, without padding; 0: all")
      ->check(rows)
      ->capture_default_str()
      ->type_name("N");
  verb.add_option("--context", request.context,
                  "A shorter context, which takes less memory; 0: the model's")
      ->check(rows)
      ->capture_default_str()
      ->type_name("N");
  verb.add_option("--tokenizer", request.tokenizer,
                  "data.tokenizer of its run file; default: the folder's tokenizer.json, "
                  "vocab.json or tokenizer.model, the first that can be used")
      ->type_name("FILE");
  add_shared_options(verb, request, ". Default: what FROM is, a folder or a file");
}

}  // namespace fourfold::ckpt
