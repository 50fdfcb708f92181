// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The keys of each table of the run file: [name] is described in run_key_<name>.cpp.
#pragma once

#include <fourfold/runfile/run_key.hpp>

#include <initializer_list>
#include <vector>

namespace fourfold::runfile {

std::vector<RunKey> model_keys();  ///< and of [model.rope_scaling]
std::vector<RunKey> mesh_keys();
std::vector<RunKey> train_keys();
std::vector<RunKey> optim_keys();
std::vector<RunKey> offload_keys();
std::vector<RunKey> data_keys();
std::vector<RunKey> checkpoint_keys();
std::vector<RunKey> log_keys();
std::vector<RunKey> watch_keys();

/// One list of several, in their order.
std::vector<RunKey> joined(std::initializer_list<std::vector<RunKey>> parts);

}  // namespace fourfold::runfile
