// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <span>
#include <string>

namespace fourfold::train {

/// runfile::load_run_config() for programs that do something with the run: where checkpoint.resume
/// names a step and the run file has no [model] table, the model is the one of that checkpoint, or
/// of the run's own newest one where a chain of jobs has outlived what it began with; model.vocab
/// and data.tokenizer are settled with the token files (with_token_settings()). Local: each process
/// that calls it reads the index of that checkpoint, and looks at these files.
/// @throws UserError: as load_run_config and with_token_settings; as io::open_checkpoint when
///   neither can be opened
runfile::EffectiveConfig load_run(const std::filesystem::path& file,
                                  std::span<const std::string> overrides = {});

}  // namespace fourfold::train
