// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device_reduction.hpp"

#include "host/reduction.hpp"

#include <cuda_check.hpp>
#include <emulated_gpu.hpp>

#include <vector>

namespace fourfold::comm {

void reduce_on_device(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* output,
                      std::int64_t elements, device::StreamRef stream) {
  emulated::launch(stream.native(),
                   [=, kept = std::vector<const void*>(inputs.begin(), inputs.end())] {
                     reduce(dtype, op, kept, output, elements);
                   });
  device::check_cuda(cudaGetLastError(), "cudaLaunchKernel", elements * size_in_bytes(dtype));
}

}  // namespace fourfold::comm
