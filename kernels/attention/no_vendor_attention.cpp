// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A build for hosts, or without cuDNN's headers.
#include "attention_backend.hpp"

namespace fourfold::kernels {

bool vendor_would_serve(const AttentionCall& /*call*/) {
  return false;
}

bool vendor_attention(const AttentionCall& /*call*/, device::StreamRef /*stream*/) {
  return false;
}

std::string vendor_attention_name() {
  return "portable attention";
}

}  // namespace fourfold::kernels
