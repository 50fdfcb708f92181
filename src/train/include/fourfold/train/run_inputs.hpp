// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>
#include <fourfold/runfile/run_input.hpp>

#include <vector>

namespace fourfold::train {

/// What a run reads beside its run file and its token files, where a person has named it: the CSV
/// file of mesh.schedule, and the files of data.tokenizer with those beside them that an export
/// reads (not those that the record beside the token files names: they belong to these). Local.
/// @param effective  of load_run()
/// @throws UserError as schedule_file_text() and data::open_tokenizer()
std::vector<runfile::RunInput> run_inputs(const runfile::EffectiveConfig& effective);

}  // namespace fourfold::train
