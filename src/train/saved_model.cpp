// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/training_state.hpp>

#include <fmt/format.h>

namespace fourfold::train {
namespace {

model::StageOptions evaluation_options(const runfile::RunConfig& config, std::int64_t sequences) {
  return {.sequences = sequences,
          .tokens = config.model.context,
          .purpose = model::StageOptions::Purpose::evaluate};
}

}  // namespace

runfile::RunConfig saved_config(const io::Checkpoint& checkpoint) {
  return runfile::parse_saved_config(checkpoint.scalars().text(config_text_name),
                                     (checkpoint.path() / config_text_name).string());
}

io::Checkpoint find_checkpoint(const std::filesystem::path& directory,
                               comm::Communicator& communicator) {
  const io::CheckpointStore store(directory);
  if (const auto newest = store.find_newest_valid(communicator)) {
    return *newest;
  }
  return io::open_checkpoint(directory, communicator);
}

SavedModel::SavedModel(const io::Checkpoint& checkpoint, std::int64_t sequences,
                       comm::Communicator& world)
    : config_(saved_config(checkpoint)),
      parameters_(model::parameter_table(config_.model), config_.train.precision, arena_),
      stage_(config_.model, model::all_units(config_.model), parameters_, seams_, arena_,
             evaluation_options(config_, sequences)) {
  const TrainingState state(parameters_, world.size());
  const io::LoadReport report = io::load(checkpoint, state.wanted(), world);
  if (!report.intact()) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{} is damaged ({}) use another step", checkpoint.path().string(),
                                report.damage.front()));
  }
  parameters_.update_weights_from_masters({});
}

}  // namespace fourfold::train
