// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "logits_file.hpp"

#include <fourfold/base/build_facts.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/program/progress.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/same_tokens.hpp>
#include <fourfold/train/saved_model.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::evaluate {
namespace {

struct Arguments {
  std::string checkpoint;
  std::vector<std::string> data;
  std::int64_t micro_batch = 1;
  std::int64_t max_samples = 0;
  int cp = 1;
  std::string logits;
  ProgressMode progress = ProgressMode::automatic;
  bool allow_mixed_tokenizers = false;
  bool json = false;
  std::vector<std::string> said;  ///< all of that, as the user said it on this rank
};

void describe(CLI::App& command, Arguments& arguments) {
  program::add_checkpoint_option(command, arguments.checkpoint);
  command.add_option("--data", arguments.data, "Token files, prefixes or patterns")->required();
  command.add_option("--micro-batch", arguments.micro_batch, "Sequences per rank and forward pass")
      ->capture_default_str()
      ->check(program::whole_number(1));
  command
      .add_option("--samples", arguments.max_samples, "Only the first N sequences; 0: all of them")
      ->capture_default_str()
      ->check(program::whole_number(0));
  command
      .add_option("--cp", arguments.cp,
                  "Ranks that share each sequence, as with mesh.cp in training: for contexts that "
                  "are too long for one")
      ->capture_default_str()
      ->check(program::whole_number(1));
  command
      .add_option("--logits", arguments.logits,
                  "Write an HDF5 file with /logits (f32), /tokens and /targets of every sample")
      ->check(program::place_to_write());
  program::add_progress_option(command, arguments.progress);
  command.add_flag("--allow-mixed-tokenizers", arguments.allow_mixed_tokenizers,
                   "Accept --data whose record names another tokenizer than the training data's");
  command.add_flag("--json", arguments.json, "Print one JSON object, for programs to read");
  command.footer(
      "\nEXAMPLES\n"
      "  fourfold evaluate runs/first --data tokens_val\n"
      "  mpiexec -n 4 fourfold evaluate runs/first --data tokens_val --json\n"
      "\nEXIT CODES\n" +
      program::exit_codes_table(
          {ExitCode::data_corrupt, ExitCode::config, ExitCode::cannot_write}));
}

void print_for_people(const Report& report) {
  program::print("{} (step {})\n", report.checkpoint, report.step);
  program::print("loss        {:.6f} nats per token\n", report.evaluation.loss);
  program::print("perplexity  {:.6g}\n", std::exp(report.evaluation.loss));
  program::print("tokens      {} in {} samples, {:.1f} s\n", report.evaluation.targets,
                 report.samples, report.seconds);
}

/// The mark is an attribute of the file (LogitsFile), which HDF5 puts at its beginning.
constexpr io::OwnFile own_logits{.mark = "fourfold logits ",
                                 .maker = "fourfold evaluate --logits",
                                 .opening = "\x89HDF\r\n\x1a\n",
                                 .is_anywhere = true};

/// No more than a rank has samples: memory is taken for all of a micro-batch.
std::int64_t useful_micro_batch(const Arguments& arguments, const data::TokenDataset& dataset,
                                std::int64_t ranks) {
  const std::int64_t samples = arguments.max_samples > 0
                                   ? std::min(arguments.max_samples, dataset.samples())
                                   : dataset.samples();
  return std::clamp<std::int64_t>(arguments.micro_batch, 1,
                                  std::max<std::int64_t>(1, (samples + ranks - 1) / ranks));
}

ExitCode evaluate(const Arguments& arguments, int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  comm::MpiRuntime mpi(&argc, &argv);
  mpi.require_one_build(build_name());
  train::require_same_on_ranks(arguments.said, mpi.world());
  if (mpi.world().size() % arguments.cp != 0) {
    throw UserError(
        ExitCode::config,
        format_message("--cp {} does not divide {} ranks; start {} ranks, or choose another --cp",
                       arguments.cp, mpi.world().size(),
                       (mpi.world().size() / arguments.cp + 1) * arguments.cp));
  }
  const auto mesh_shape = comm::resolve_mesh({.dp = 0, .cp = arguments.cp}, mpi.world().size());
  comm::Mesh mesh(mesh_shape, mpi.device_world());
  const kernels::Runtime kernels;
  if (!arguments.logits.empty()) {
    io::refuse_place_in_step(arguments.logits);
    io::refuse_foreign_file(arguments.logits, own_logits);
  }
  const auto checkpoint = train::open_named_checkpoint(arguments.checkpoint, mpi.world());
  const runfile::RunConfig config = train::saved_config(checkpoint);
  const model::Architecture& shape = config.model;
  const data::TokenDataset dataset(arguments.data,
                                   {.context = shape.context,
                                    .vocab = shape.vocab,
                                    .order = data::TokenDataset::Order::sequential});
  train::require_same_tokens(dataset, "--data", mpi.world());
  train::refuse_foreign_tokens(
      checkpoint, dataset, arguments.allow_mixed_tokenizers || config.data.allow_mixed_tokenizers);
  const std::int64_t micro_batch = useful_micro_batch(arguments, dataset, mesh.shape().dp);
  using Logits = train::SavedModel::Logits;
  train::SavedModel model(checkpoint, micro_batch, mesh,
                          arguments.logits.empty() ? Logits::in_chunks : Logits::whole);
  train::Evaluator evaluator(dataset, mesh, micro_batch, arguments.max_samples, model.arena());
  std::optional<LogitsFile> logits;
  const bool shows = mpi.world().rank() == 0;
  program::Progress progress(shows ? arguments.progress : ProgressMode::none, "evaluated",
                             "samples");
  progress.show(0, evaluator.samples());
  std::int64_t evaluated = 0;
  const auto note = [&](Range samples) {
    evaluated += samples.count * mesh.shape().dp;  // the others are as far, but for the last
    progress.show(std::min(evaluated, evaluator.samples()), evaluator.samples());
  };
  train::Evaluator::Visit visit = note;
  if (!arguments.logits.empty()) {
    if (arguments.cp > 1) {
      throw UserError(ExitCode::config,
                      "--logits does not go with --cp (it takes whole sequences from each rank); "
                      "leave out one of them");
    }
    logits.emplace(io::followed(arguments.logits), checkpoint, dataset, evaluator.samples(),
                   shape.vocab, mpi.world());
    visit = [&](Range samples) {
      logits->add(samples, model.stage());
      note(samples);
    };
  }
  const train::Evaluation evaluation = evaluator.run(train::forward_pass(model.stage()), {}, visit);
  progress.finish();
  if (logits) {  // what has come to that name in the meantime is looked at, too
    comm::run_on_root(mpi.world(), [&] { io::refuse_foreign_file(arguments.logits, own_logits); });
    logits->publish();
  }
  if (mpi.world().rank() == 0) {
    const Report report{.checkpoint = checkpoint.path().string(),
                        .step = checkpoint.step(),
                        .evaluation = evaluation,
                        .samples = evaluator.samples(),
                        .seconds = std::chrono::duration<double>(Clock::now() - start).count()};
    if (arguments.json) {
      program::print_text(to_json(report) + "\n");
    } else {
      print_for_people(report);
    }
  }
  if (!std::isfinite(evaluation.loss)) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("the loss of {} is not finite (its weights are lost, or "
                                   "overflow its precision); take an older checkpoint",
                                   checkpoint.path().string()));
  }
  return ExitCode::finished;
}

}  // namespace
}  // namespace fourfold::evaluate

int main(int argc, char** argv) {
  CLI::App command{
      "Measures a trained model's mean loss per token on token files. Runs on any number of ranks "
      "(mpiexec -n N fourfold evaluate ...), which share the samples.",
      "fourfold evaluate"};
  fourfold::evaluate::Arguments arguments;
  fourfold::evaluate::describe(command, arguments);
  const std::string less = "use a smaller --micro-batch, share each sequence with --cp, or ";
  fourfold::set_remedies({.host_memory = less + "run it where there is more",
                          .device_memory = less + "run it on a GPU that has more"});
  return fourfold::program::run("fourfold evaluate", [&] {
    if (const auto end = fourfold::program::parse(command, argc, argv)) {
      return *end;
    }
    fourfold::program::enable_verbose_log();
    arguments.said = fourfold::program::said_by(command);
    return fourfold::evaluate::evaluate(arguments, argc, argv);
  });
}
