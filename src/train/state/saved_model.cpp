// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/parallel/mesh_hooks.hpp>
#include <fourfold/runfile/model_of_checkpoint.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/training_state.hpp>

#include <algorithm>

namespace fourfold::train {

namespace {

model::StageOptions evaluation_options(const runfile::RunConfig& config, std::int64_t sequences,
                                       int cp, SavedModel::Logits logits) {
  const std::int64_t tokens = config.model.context / cp;
  const std::int64_t chunks =
      logits == SavedModel::Logits::whole
          ? 1
          : std::min<std::int64_t>(config.train.head_chunks, sequences * tokens);
  return {.sequences = sequences,
          .tokens = tokens,
          .purpose = model::StageOptions::Purpose::evaluate,
          .head_chunks = static_cast<int>(chunks)};
}

runfile::RunConfig config_for(const io::Checkpoint& checkpoint, const comm::MeshShape& mesh) {
  FOURFOLD_EXPECT(mesh.pp == 1 && mesh.tp == 1);
  runfile::RunConfig config = saved_config(checkpoint);
  parallel::validate_context_cut(config.model, parallel::ContextMode::ring, mesh.cp, mesh.tp);
  return config;
}

std::unique_ptr<model::ParallelHooks> hooks_for(const runfile::RunConfig& config,
                                                std::int64_t sequences, comm::Mesh& mesh,
                                                device::Arena& arena) {
  if (mesh.shape().cp == 1) {
    return std::make_unique<model::ParallelHooks>();
  }
  runfile::RunConfig evaluated = config;
  evaluated.mesh.context_mode = parallel::ContextMode::ring;
  evaluated.train.micro_batch = sequences;
  return std::make_unique<parallel::MeshHooks>(mesh, parallel::TensorParallelOptions{},
                                               context_options(evaluated, mesh.shape()), arena);
}

}  // namespace

SavedModel::SavedModel(const io::Checkpoint& checkpoint, std::int64_t sequences, comm::Mesh& mesh,
                       Logits logits)
    : config_(config_for(checkpoint, mesh.shape())),
      parameters_(model::parameter_table(config_.model), config_.train.precision, arena_),
      hooks_(hooks_for(config_, sequences, mesh, arena_)),
      stage_(config_.model, model::all_units(config_.model), parameters_, *hooks_, arena_,
             evaluation_options(config_, sequences, mesh.shape().cp, logits)) {
  comm::Communicator& world = mesh.world().host();
  TrainingState state(parameters_, world.size());
  const io::LoadReport report =
      io::load(checkpoint, state.wanted(), world, {},
               {state.layouts(), static_cast<int>(config_.checkpoint.share_reads_from)});
  if (!report.intact()) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{} is damaged ({}); use another step",
                                   checkpoint.path().string(), report.damage.front()));
  }
  state.put({});
  parameters_.update_weights_from_masters({});
}

runfile::RunConfig saved_config(const io::Checkpoint& checkpoint) {
  return runfile::parse_saved_config(checkpoint.scalars().text(runfile::config_text_name),
                                     (checkpoint.path() / runfile::config_text_name).string());
}

}  // namespace fourfold::train
