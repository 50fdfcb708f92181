// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What an emulated device has for cuDNN: the portable kernel, for the calls that cuDNN serves,
/// with results of 16 bits and as much scratch memory as cuDNN takes. Numbers are the portable
/// kernel's; the ways to the library and back are those of a GPU.
#include "attention_backend.hpp"
#include "runtime/scratch.hpp"

#include <fourfold/device/device.hpp>

namespace fourfold::kernels {
namespace {

int compute_capability() {
  static const int its = device::device_facts().compute_capability;
  return its;
}

/// The library is told where results go by pointers that it writes through.
Heads written(const ConstHeads& x) {
  return {const_cast<void*>(x.data), x.dtype, x.batch_stride, x.token_stride};
}

}  // namespace

bool vendor_would_serve(const AttentionCall& call) {
  return vendor_serves(call, compute_capability());
}

bool vendor_attention(const AttentionCall& call, device::StreamRef stream) {
  if (!vendor_would_serve(call)) {
    return false;
  }
  if (!call.is_backward) {
    portable_attention(call.shape, call.q, call.k, call.v, written(call.out),
                       const_cast<float*>(call.lse_BNT), false, stream);
    return true;
  }
  const std::int64_t bytes = attention_workspace_bytes(call.shape, compute_capability());
  auto* const delta_BNT = static_cast<float*>(scratch(bytes, stream));
  sum_attention_delta(call.shape, call.out, call.dout, delta_BNT, stream);
  portable_attention_backward(
      {call.shape, call.q, call.k, call.v, call.out, call.dout, call.lse_BNT, delta_BNT,
       written(call.dq), Write::replace, written(call.dk), written(call.dv), Write::replace},
      stream);
  return true;
}

std::string vendor_attention_name() {
  return "portable attention";
}

}  // namespace fourfold::kernels
