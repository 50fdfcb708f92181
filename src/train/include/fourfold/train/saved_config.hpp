// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/checkpoint.hpp>
#include <fourfold/runfile/run_config.hpp>

namespace fourfold::train {

/// The run file of the training run that saved it, with all defaults. Programs of a login node ask
/// for it without the libraries that a model needs.
/// @throws UserError (config) when it cannot be read
runfile::RunConfig saved_config(const io::Checkpoint& checkpoint);

}  // namespace fourfold::train
