// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/program/command_line.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/program/run.hpp>

namespace {

using fourfold::ExitCode;
using fourfold::apps::InfoRequest;
using fourfold::apps::PrepareRequest;

void describe_prepare(CLI::App& verb, PrepareRequest& request) {
  verb.add_option("--tokenizer", request.tokenizer,
                  "'byte', a SentencePiece model, a Hugging Face tokenizer.json, a vocab.json with "
                  "merges.txt beside it, or a folder that holds one of these")
      ->capture_default_str();
  verb.add_option("--output", request.output,
                  "Prefix of the files to write: PREFIX.bin, PREFIX.idx, PREFIX.json. An older set "
                  "that this program made is replaced; nothing else is")
      ->required()
      ->check(fourfold::program::place_to_write())
      ->type_name("PREFIX");
  fourfold::program::add_named_option(verb, "--format", request.format,
                                      "How INPUTs are read: 'auto' (as their content tells: JSON "
                                      "lines, or plain text), 'text' or 'jsonl'")
      ->default_str(std::string(name(request.format)));
  verb.add_flag("--append-eot", request.append_end_of_text,
                "Put the end-of-text token after every document");
  verb.add_option("--document-separator", request.document_separator,
                  "Text that stands between the documents of a file, e.g. '\\n\\n\\n'; otherwise a "
                  "file is one document");
  verb.add_option("--validation-fraction", request.validation_fraction,
                  "Hold back the last part of every input: writes PREFIX_train.* and PREFIX_val.*")
      ->check(fourfold::program::number_between(0, 0.99));
  verb.add_flag("--vocab-check", request.check,
                "Read the files again and check every token against the vocabulary");
  fourfold::program::add_progress_option(verb, request.progress);
  verb.add_option("INPUT", request.inputs,
                  "UTF-8 text files, or files of JSON lines with a \"text\" in every line")
      ->required()
      ->type_name("");
}

void describe_info(CLI::App& verb, InfoRequest& request) {
  verb.add_flag("--json", request.json, "Print one JSON list, for programs to read");
  verb.add_option("--tokenizer", request.tokenizer,
                  "Tokenizer to decode with, as for prepare; otherwise the one that is recorded "
                  "beside the file");
  verb.add_option("--show", request.show,
                  "Show the first N tokens, and their text where a tokenizer is known")
      ->check(fourfold::program::whole_number(0, 1'000'000))
      ->type_name("N");
  verb.add_option("FILE", request.files,
                  "Token files: Megatron .bin/.idx or llm.c .bin; patterns like 'tokens/*' too")
      ->required()
      ->type_name("");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Turns text into token files and shows what token files hold.", "fourfold data"};
  command.require_subcommand(1);
  PrepareRequest prepare_request;
  InfoRequest info_request;
  CLI::App* const prepare = command.add_subcommand("prepare", "Turn text files into a token file");
  CLI::App* const info =
      command.add_subcommand("info", "Show what token files hold, checking all of it");
  describe_prepare(*prepare, prepare_request);
  describe_info(*info, info_request);
  const std::string codes =
      "\nEXIT CODES\n" + fourfold::program::exit_codes_table(
                             {ExitCode::data_corrupt, ExitCode::cannot_write, ExitCode::config});
  command.footer(
      "\nEXAMPLES\n"
      "  fourfold data prepare --output tokens text.txt      bytes as tokens\n"
      "  fourfold data info tokens\n" +
      codes);
  prepare->footer(
      "\nEXAMPLES\n"
      "  fourfold data prepare --output tokens --validation-fraction 0.05 text.txt\n"
      "  fourfold data prepare --tokenizer hf-model/tokenizer.json --append-eot --output tokens "
      "a.jsonl b.jsonl\n" +
      codes);
  info->footer(
      "\nEXAMPLES\n"
      "  fourfold data info tokens --show 20\n"
      "  fourfold data info 'tokens/*' --json\n" +
      codes);
  return fourfold::program::run("fourfold data", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    if (prepare->parsed()) {
      fourfold::program::enable_verbose_log();
      fourfold::apps::prepare(prepare_request);
    } else {
      fourfold::apps::info(info_request);
    }
    return ExitCode::finished;
  });
}
