// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/model/architecture.hpp>

namespace fourfold::interchange {

class Members;

/// rope_theta and rope_scaling of a llama from its config.json. transformers 5 has rope_parameters,
/// 4 has rope_theta and rope_scaling; a file that was edited may have all, which must agree then.
/// @pre config.context is filled in
/// @throws UserError (config) naming key and value, or both places of a contradiction
void read_rope(const Members& members, model::Architecture& config);

}  // namespace fourfold::interchange
