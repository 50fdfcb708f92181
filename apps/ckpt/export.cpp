// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/io/tensor_source.hpp>
#include <fourfold/model_conversion/export.hpp>
#include <fourfold/model_conversion/hf_tokenizer.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/saved_model.hpp>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace fourfold::ckpt {
namespace {

/// What the process has besides: code, the index, the chunk that is being read.
constexpr std::int64_t beside_buffers_bytes = std::int64_t{48} << 20;

/// No tokenizer, and the reason.
model_conversion::HfTokenizer no_tokenizer(const std::string& why) {
  model_conversion::HfTokenizer none;
  none.notes.push_back(
      format_message("no tokenizer is written: {}; name the model's with --tokenizer", why));
  return none;
}

using OpenedTokenizer = std::unique_ptr<data::Tokenizer>;

/// The tokenizer of a name. @throws UserError when it cannot be the model's
OpenedTokenizer named_tokenizer(const std::string& named, const model::Architecture& config) {
  OpenedTokenizer tokenizer = data::open_tokenizer(named);
  if (tokenizer->vocab_size() > config.vocab) {
    throw UserError(ExitCode::config,
                    format_message("the tokenizer {} has {} tokens, and the model {} rows of the "
                                   "vocabulary; name the one of the model's data",
                                   named, tokenizer->vocab_size(), config.vocab));
  }
  return tokenizer;
}

/// The tokenizer of the data that the model was trained on, as far as its run file says; none, and
/// why. A run on token files without a record may have kept the default, which then is another one.
OpenedTokenizer trained_tokenizer(const std::string& named, const model::Architecture& config,
                                  std::string& why_none) {
  if (named == runfile::unknown_tokenizer_name) {
    why_none = "the model was imported without one, or its token files have no record";
    return nullptr;
  }
  try {
    OpenedTokenizer tokenizer = named_tokenizer(named, config);
    const std::int64_t tokens = tokenizer->vocab_size();
    if (config.vocab <= 2 * tokens) {
      return tokenizer;
    }
    why_none = fmt::format(
        "data.tokenizer = \"{}\" has {} tokens, and model.vocab = {} is too large for it", named,
        tokenizer->vocab_size(), config.vocab);
  } catch (const UserError& error) {
    why_none = error.what();
  }
  return nullptr;
}

model_conversion::HfTokenizer tokenizer_for(const Request& request,
                                            const io::Checkpoint& checkpoint,
                                            const model::Architecture& config) {
  if (request.format != "hf" || request.tokenizer == "none") {
    return {};
  }
  const runfile::DataConfig data = train::saved_config(checkpoint).data;
  std::string why_none;
  const OpenedTokenizer tokenizer = request.tokenizer.empty()
                                        ? trained_tokenizer(data.tokenizer, config, why_none)
                                        : named_tokenizer(request.tokenizer, config);
  if (!tokenizer) {
    return no_tokenizer(why_none);
  }
  train::refuse_foreign_tokenizer(checkpoint, *tokenizer,
                                  request.allow_mixed_tokenizers || data.allow_mixed_tokenizers);
  try {
    return model_conversion::hf_tokenizer(*tokenizer, config.context);
  } catch (const UserError& error) {  // what lies beside it
    if (!request.tokenizer.empty()) {
      throw;
    }
    return no_tokenizer(error.what());
  }
}

model_conversion::ExportPlan plan_of(const Request& request, const model::Architecture& config,
                                     const model_conversion::HfTokenizer& tokenizer) {
  const std::int64_t shard_bytes = request.shard_bytes;
  const model_conversion::ExportOptions options{.dtype = *dtype_from_name(request.dtype),
                                                .shard_bytes = shard_bytes,
                                                .vocab_multiple = request.vocab_multiple};
  return request.format == "hf" ? model_conversion::plan_hf_export(config, options, tokenizer)
                                : model_conversion::plan_llmc_export(config, options);
}

void print_plan(const model_conversion::ExportPlan& plan, const std::string& output) {
  for (const model_conversion::ExternalFile& file : plan.files) {
    program::print("{}{}{}  {} tensors, {}\n", output, plan.is_folder ? "/" : "", file.name,
                   file.tensors.size(), telemetry::bytes_text(file.bytes));
  }
  for (const FileBytes& text : plan.texts) {
    program::print("{}/{}\n", output, text.path.string());
  }
}

void print_notes(const model_conversion::HfTokenizer& tokenizer,
                 const model_conversion::ExportPlan& plan) {
  for (const std::vector<std::string>* const notes : {&tokenizer.notes, &plan.notes}) {
    for (const std::string& note : *notes) {
      program::print("note   {}\n", note);
    }
  }
}

}  // namespace

ExitCode export_model(const Request& request) {
  io::refuse_place_in_step(request.to);
  program::Progress progress(request.dry_run ? ProgressMode::none : request.progress, "exported");
  io::CheckpointSource source(open(request.checkpoint));
  const io::Checkpoint& checkpoint = source.checkpoint();
  const model::Architecture config = model_conversion::model_of(checkpoint);
  const model_conversion::HfTokenizer tokenizer = tokenizer_for(request, checkpoint, config);
  const model_conversion::ExportPlan plan = plan_of(request, config, tokenizer);
  if (request.dry_run) {
    program::print("step {} of {} would be written to\n", checkpoint.step(),
                   checkpoint.path().string());
    print_plan(plan, request.to);
    print_notes(tokenizer, plan);
    return ExitCode::finished;
  }
  model_conversion::write_export(
      plan, source, request.to, request.memory_bytes - beside_buffers_bytes,
      [&](std::int64_t done_bytes) { progress.show(done_bytes, plan.bytes()); });
  progress.finish();
  program::print("step {} of {} written to\n", checkpoint.step(), checkpoint.path().string());
  print_plan(plan, request.to);
  print_notes(tokenizer, plan);
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
