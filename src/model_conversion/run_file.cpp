// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/text.hpp>
#include <fourfold/model_conversion/import.hpp>
#include <fourfold/runfile/run_key.hpp>

#include <fmt/format.h>

#include <tuple>

namespace fourfold::model_conversion {
namespace {

constexpr const char* head =
    R"(# Begins a run with the weights of an imported model. Made by `fourfold ckpt import`; yours to change.
#
# 1. Make token files with the model's tokenizer: fourfold data prepare --tokenizer ... --output PREFIX TEXT...
# 2. Name them in data.train, here or with --set data.train=PREFIX_train.
# 3. Look at [train] and [optim]. Their values are the defaults, which are for training from the start;
#    to tune a model that is trained already, a lower optim.lr is usual.
# 4. fourfold train {0}
#
# The first start takes the weights, later ones the run's own newest checkpoint. Lines that begin with "# " and a key
# have no effect with the values here, or are left to what is found.
)";

bool is_left_to_others(const runfile::RunKey& key, const runfile::RunConfig& config) {
  return !key.has_effect(config) || key.full_name == "model.preset" ||
         (key.full_name == "data.tokenizer" && config.data.tokenizer.empty());
}

}  // namespace

std::string run_file_of(const model::Architecture& model, const std::string& tokenizer,
                        const std::filesystem::path& step, const std::filesystem::path& file) {
  runfile::RunConfig config;
  config.model = model;
  config.data.tokenizer = tokenizer;
  config.checkpoint.resume = step.string();
  config.checkpoint.weights_only = true;
  config.log.dir = (step.parent_path() / "run").string();  // that of another import is another run
  // A comment of TOML may not hold every byte that a name may.
  std::string text = fmt::format(fmt::runtime(head), printable(shell_word(file.string())));
  for (const runfile::RunTable& table : runfile::run_tables()) {
    text += fmt::format("\n[{}]\n", table.name);
    for (const runfile::RunKey& key : runfile::keys_of(table.name)) {
      const std::string setting =
          fmt::format("{}{} = {}", is_left_to_others(key, config) ? "# " : "", key.name,
                      runfile::value_text(key, config));
      text += fmt::format("{:<32}  # {}\n", setting, key.meaning);
    }
  }
  std::ignore = runfile::parse_run_config(text, file.string());  // what train will do
  return text;
}

}  // namespace fourfold::model_conversion
