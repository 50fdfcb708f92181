// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What shows that a start will be refused before anything of the run is touched, its lease
/// included: a start that was mistyped ends no other one, not even one that stands still.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

/// Where checkpoint.dir holds no step: that log.dir is neither the folder of a run whose
/// checkpoints are elsewhere, nor a folder of checkpoints. Local; only reads.
/// @throws UserError (config)
void refuse_wrong_folders(const runfile::RunConfig& config);

/// What resume() will refuse, as far as it shows without the lease of checkpoint.dir: the folders,
/// and where checkpoint.resume is "auto" each key that the newest step was saved with and that may
/// not change; also that another run would go on over the record in log.dir. A step that cannot be
/// opened, or goes meanwhile, is left to resume(). Only reads. Collective, with the same arguments
/// on all ranks; rank 0 looks.
/// @param allowed_changes  keys that may differ from the checkpoint's
/// @throws UserError (config) on all ranks alike
void look_before_lease(const runfile::RunConfig& config,
                       std::span<const std::string> allowed_changes, comm::Communicator& world);

/// The same by a process of its own: what can be told before a job is queued. Local.
void look_alone(const runfile::RunConfig& config, std::span<const std::string> allowed_changes);

/// The same, before it answers that a run is finished: that is no answer to
/// one with other keys that has its log.dir by mistake, and that nobody would start. Local.
/// @return whether it is the run that ended, as far as a start would look: false where that begins
///         with other weights, or its training data are others; then only a start can say more
bool look_before_answer(const runfile::RunConfig& config,
                        std::span<const std::string> allowed_changes);

/// What a run reads beside its run file and its token files, where a person has named it: the CSV
/// file of mesh.schedule, and the files of data.tokenizer with those beside them that an export
/// reads (not those that the record beside the token files names: they belong to these). Local.
/// @param effective  of load_run()
/// @throws UserError as schedule_file_text() and data::open_tokenizer()
std::vector<runfile::RunInput> run_inputs(const runfile::EffectiveConfig& effective);

}  // namespace fourfold::train
