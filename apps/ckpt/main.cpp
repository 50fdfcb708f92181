// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace {

using fourfold::ExitCode;
namespace ckpt = fourfold::ckpt;

struct Verb {
  CLI::App* options;
  std::function<ExitCode()> run;
};

/// Verbs are added in the order in which help lists them.
class Verbs {
 public:
  explicit Verbs(CLI::App& command) : command_(command) {}

  template <class Request>
  void add(const char* name, const char* meaning, void (*describe)(CLI::App&, Request&),
           ExitCode (*work)(const Request&)) {
    const auto request = std::make_shared<Request>();
    CLI::App* const options = command_.add_subcommand(name, meaning);
    describe(*options, *request);
    verbs_.push_back({options, [request, work] { return work(*request); }});
  }

  void add_footer(const std::string& text) {
    command_.footer(text);
    for (const Verb& verb : verbs_) {
      verb.options->footer(text);
    }
  }

  /// What to do where memory is short names only what the verb has.
  ExitCode run() const {
    const auto verb =
        std::ranges::find_if(verbs_, [](const Verb& one) { return one.options->parsed(); });
    if (verb->options->get_option_no_throw("--memory") != nullptr) {
      fourfold::set_remedies(
          {.host_memory = "use a smaller --memory, or run it where there is more"});
    }
    return verb->run();
  }

 private:
  CLI::App& command_;
  std::vector<Verb> verbs_;
};

ExitCode look_at_checkpoints(int argc, char** argv) {
  CLI::App command{
      "Looks at checkpoints and cuts them anew, on any machine: it needs neither ranks nor a "
      "device "
      "nor the run file.",
      "fourfold ckpt"};
  command.require_subcommand(1);
  Verbs verbs(command);
  verbs.add("info", "Show what a checkpoint holds, and where", ckpt::describe_info, ckpt::info);
  verbs.add("verify", "Check whether checkpoints are whole; name what is damaged",
            ckpt::describe_verify, ckpt::verify);
  verbs.add("repair-index", "Make a damaged index or manifest again from the payloads, with proof",
            ckpt::describe_repair_index, ckpt::repair_index);
  verbs.add("diff", "Compare two checkpoints, also of different meshes, tensor by tensor",
            ckpt::describe_diff, ckpt::diff);
  verbs.add("reshard", "Cut a checkpoint for another mesh, bit for bit; also under mpiexec",
            ckpt::describe_reshard, ckpt::reshard);
  verbs.add("merge", "Make one HDF5 file of it, with each tensor whole", ckpt::describe_merge,
            ckpt::merge);
  verbs.add("export", "Write the weights for other programs: Hugging Face transformers, llm.c",
            ckpt::describe_export, ckpt::export_model);
  verbs.add("import", "Make a checkpoint of the weights of other programs", ckpt::describe_import,
            ckpt::import_model);
  verbs.add("gc", "Remove old steps, and what dead jobs left", ckpt::describe_gc, ckpt::gc);
  verbs.add_footer("\nEXIT CODES\n" +
                   fourfold::program::exit_codes_table({ExitCode::differs, ExitCode::data_corrupt,
                                                        ExitCode::cannot_write, ExitCode::config}));
  const auto end = fourfold::program::parse(command, argc, argv);
  return end ? *end : verbs.run();
}

}  // namespace

int main(int argc, char** argv) {
  // All of it: what describes the options needs memory, too.
  return fourfold::program::run("fourfold ckpt", [&] { return look_at_checkpoints(argc, argv); });
}
