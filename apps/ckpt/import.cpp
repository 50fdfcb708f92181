// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/made_folders.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/io/streamed_save.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/import.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/train/data_facts.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

namespace fourfold::ckpt {
namespace {

/// What the process has besides the part of a tensor that it holds: code, the index, what foreign
/// files are read through, the chunks that are being written.
constexpr std::int64_t beside_parts_bytes = std::int64_t{64} << 20;
constexpr const char* run_file_name = "run.toml";

/// A folder is Hugging Face's; of a file its content has to be llm.c's.
bool is_hf(const Request& request) {
  std::error_code ignored;  // of what is not there
  return request.format.empty() ? std::filesystem::is_directory(request.foreign, ignored)
                                : request.format == "hf";
}

model_conversion::ExternalModel open_model(const Request& request) {
  const model_conversion::ImportOptions options{.vocab = request.vocab, .context = request.context};
  return is_hf(request) ? model_conversion::open_hf(request.foreign, options)
                        : model_conversion::open_llmc(request.foreign, options);
}

/// Its name holds in any working directory. @throws UserError when it is another model's
train::TokenMaker checked(const data::Tokenizer& tokenizer, const model::Architecture& config) {
  const std::string name = tokenizer.files().name();
  if (tokenizer.vocab_size() > config.vocab) {
    throw UserError(ExitCode::config,
                    format_message("{} has {} tokens, and the model {} rows of the vocabulary; "
                                   "name the model's tokenizer with --tokenizer",
                                   name, tokenizer.vocab_size(), config.vocab));
  }
  return {.file = {},
          .tokenizer = name,
          .identity = tokenizer.identity(),
          .vocab = tokenizer.vocab_size()};
}

/// What the user says, else the file of the folder that can be used.
std::optional<train::TokenMaker> tokenizer_of(const Request& request,
                                              const model::Architecture& config) {
  if (!request.tokenizer.empty()) {
    return checked(*data::open_tokenizer(request.tokenizer), config);
  }
  if (!is_hf(request)) {
    return std::nullopt;
  }
  try {
    const auto tokenizer = data::open_tokenizer_in(request.foreign);
    return tokenizer ? std::optional(checked(*tokenizer, config)) : std::nullopt;
  } catch (const UserError& error) {  // the weights are good without
    log::warning(
        format_message("the model is imported without its tokenizer: {}", printable(error.what())));
    return std::nullopt;
  }
}

/// With the tokenizer's identity, so that it is known when its files have changed.
io::CheckpointScalars scalars_of(const model::Architecture& config,
                                 const std::optional<train::TokenMaker>& tokenizer) {
  io::CheckpointScalars scalars =
      model_conversion::scalars_of(config, tokenizer ? tokenizer->tokenizer : "");
  if (tokenizer) {
    scalars.texts[runfile::tokenizers_name] = train::token_makers_text({&*tokenizer, 1});
  }
  return scalars;
}

void print_model(const model::Architecture& config) {
  program::print(
      "model  {}: {} layers, hidden {}, heads {}, kv_heads {}, ffn {}, vocab {}, context {}\n",
      family_name(config), config.layers, config.hidden, config.attention.heads,
      config.attention.kv_heads, config.feed_forward.width, config.vocab, config.context);
  const std::int64_t parameters = model::parameter_count(config);
  program::print("       {} parameters, {} as f32 masters\n", parameters,
                 telemetry::bytes_text(4 * parameters));
}

/// A run file there would be the user's.
void refuse_run_file(const std::string& directory) {
  const std::filesystem::path file = std::filesystem::path(directory) / run_file_name;
  if (std::filesystem::exists(std::filesystem::symlink_status(file))) {
    throw UserError(ExitCode::config,
                    format_message("{}: is there already (an import writes the run file to "
                                   "continue with there); name another folder",
                                   file.string()));
  }
}

/// Its step is 0: other steps there would be another run's.
void refuse_steps(const std::string& directory) {
  const auto others = io::passed_over_in(directory);
  io::warn_of_passed_over(others);
  if (!io::list_steps(directory).empty() ||
      std::ranges::any_of(others, [](const auto& entry) { return entry.step.has_value(); })) {
    throw UserError(ExitCode::config,
                    format_message("{}: holds checkpoints already (an import begins a folder of "
                                   "steps); name another folder",
                                   directory));
  }
}

/// A folder of somebody else's model does not become one of checkpoints, too.
void refuse_own_input(const Request& request) {
  std::error_code failure;
  if (std::filesystem::equivalent(request.foreign, request.to, failure)) {
    throw UserError(
        ExitCode::config,
        format_message("{}: is the folder of the model that is imported; name another folder",
                       request.to));
  }
}

}  // namespace

ExitCode import_model(const Request& request) {
  io::refuse_step_as_directory(request.to);
  program::Progress progress(request.dry_run ? ProgressMode::none : request.progress, "imported");
  const model_conversion::ExternalModel model = open_model(request);
  const auto tokenizer = tokenizer_of(request, model.config);
  refuse_own_input(request);
  refuse_steps(request.to);
  refuse_run_file(request.to);
  refuse_directory_of_run(request.to);
  const std::filesystem::path step = whole_path(request.to) / "step-000000000";
  const std::filesystem::path run_file_path = std::filesystem::path(request.to) / run_file_name;
  const std::string run_file_text = model_conversion::run_file_of(
      model.config, tokenizer ? tokenizer->tokenizer : "", step, run_file_path);
  progress.finish();
  print_model(model.config);
  for (const std::string& note : model.notes) {
    program::print("note   {}\n", note);
  }
  if (request.dry_run) {
    program::print("step 0 would be written to {}\n", request.to);
    return ExitCode::finished;
  }
  io::MadeFolders folder(request.to);
  io::AtomicFile run_file(run_file_path);  // on the disk before the step, and named after it
  run_file.write(run_file_text);
  run_file.sync();
  const std::vector<io::TensorLayout> layouts = model_conversion::layouts_of(model.config);
  comm::run_ranks(1, [&](comm::Communicator& self) {
    const io::SaveReport report = io::save_streamed(
        request.to,
        {.mesh = {},
         .scalars = scalars_of(model.config, tokenizer),
         .tensors = layouts,
         .goes_on = false,  // an attempt that was killed may have been of another model
         .part_bytes = request.memory_bytes - beside_parts_bytes,
         .progress = [&](std::int64_t done_bytes,
                         std::int64_t total_bytes) { progress.show(done_bytes, total_bytes); }},
        *model.source, self);
    run_file.publish_as_new();
    folder.keep();
    progress.finish();
    program::print("{}: written in {:.1f} s\n", report.path.string(), report.seconds);
    program::print("{}: begins a run with it, once data.train is named\n", run_file_path.string());
  });
  return ExitCode::finished;
}

}  // namespace fourfold::ckpt
