// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/attention.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// How much of a tensor of heads is meant: `features` neighbours of each token, one head or
/// several.
struct HeadRows {
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::int64_t features = 0;
};

/// to[b][t][f] = from[b][t][f], converted between f32, bf16 and f16 (round to nearest even) where
/// the two differ. Both begin at their data; what lies between the features stays as it is. No
/// overlap. Stream-ordered.
void copy_heads(const HeadRows& rows, ConstHeads from, Heads to, device::StreamRef stream);

}  // namespace fourfold::kernels
