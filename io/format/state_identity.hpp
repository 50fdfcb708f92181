// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "format/checkpoint_contents.hpp"

#include <fourfold/io/fingerprint.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::io {

/// Step and numbers: what a run computes on with, besides the tensors.
void add_state(Fingerprint& fingerprint, std::int64_t step, const CheckpointScalars& scalars);

/// The identity of a state (docs/checkpoint-format.md, section 5), from the digests of its tensors.
/// @param index  with its scalars; tensors by id
std::string state_identity(std::int64_t step, const Index& index);

/// Where a manifest names another identity or model than its index makes.
std::vector<std::string> identity_damage(const Manifest& manifest, const Index& index);

}  // namespace fourfold::io
