// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device_reduction.hpp"

#include <fourfold/base/contract.hpp>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <native_stream.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace fourfold::comm {
namespace {

/// By value: a kernel's parameters.
struct Inputs {
  const void* data[most_device_ranks];
  int count;
};
static_assert(sizeof(Inputs) < 4000, "parameters of a kernel have 4 KiB");

template <class T>
constexpr bool is_half = std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, __half>;
template <class T>
using Accumulator = std::conditional_t<is_half<T>, float, T>;

template <class A>
__device__ bool is_nan(A value) {
  return value != value;
}

template <ReduceOp op, class A>
__device__ A combine(A left, A right) {
  if constexpr (op == ReduceOp::max) {
    return is_nan(left) || left > right ? left : right;
  } else if constexpr (op == ReduceOp::min) {
    return is_nan(left) || left < right ? left : right;
  } else if constexpr (std::is_integral_v<A>) {  // wraps
    using U = std::make_unsigned_t<A>;
    return static_cast<A>(static_cast<U>(static_cast<U>(left) + static_cast<U>(right)));
  } else {
    return left + right;
  }
}

template <class T, ReduceOp op>
__global__ void reduce_in_order(Inputs inputs, T* output, std::int64_t elements) {
  using A = Accumulator<T>;
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < elements; i += step) {
    A sum = static_cast<A>(static_cast<const T*>(inputs.data[0])[i]);
    for (int rank = 1; rank < inputs.count; ++rank) {
      sum = combine<op>(sum, static_cast<A>(static_cast<const T*>(inputs.data[rank])[i]));
    }
    if constexpr (op == ReduceOp::avg) {
      sum = sum / static_cast<A>(inputs.count);
    }
    output[i] = static_cast<T>(sum);
  }
}

template <class T, ReduceOp op>
void launch(const Inputs& inputs, void* output, std::int64_t elements, cudaStream_t stream) {
  constexpr int threads = 256;
  constexpr std::int64_t most_blocks = 4096;
  const std::int64_t blocks = std::min(most_blocks, (elements + threads - 1) / threads);
  reduce_in_order<T, op><<<static_cast<unsigned>(blocks), threads, 0, stream>>>(
      inputs, static_cast<T*>(output), elements);
}

template <class T>
void launch_op(ReduceOp op, const Inputs& inputs, void* output, std::int64_t elements,
               cudaStream_t stream) {
  switch (op) {
    case ReduceOp::sum:
      return launch<T, ReduceOp::sum>(inputs, output, elements, stream);
    case ReduceOp::max:
      return launch<T, ReduceOp::max>(inputs, output, elements, stream);
    case ReduceOp::min:
      return launch<T, ReduceOp::min>(inputs, output, elements, stream);
    case ReduceOp::avg:
      if constexpr (is_half<T> || std::is_floating_point_v<T>) {
        return launch<T, ReduceOp::avg>(inputs, output, elements, stream);
      }
  }
  FOURFOLD_ASSERT(!"avg of integers");
}

void launch_type(DType dtype, ReduceOp op, const Inputs& inputs, void* output,
                 std::int64_t elements, cudaStream_t stream) {
  switch (dtype) {
    case DType::f32:
      return launch_op<float>(op, inputs, output, elements, stream);
    case DType::bf16:
      return launch_op<__nv_bfloat16>(op, inputs, output, elements, stream);
    case DType::f16:
      return launch_op<__half>(op, inputs, output, elements, stream);
    case DType::f64:
      return launch_op<double>(op, inputs, output, elements, stream);
    case DType::i32:
      return launch_op<std::int32_t>(op, inputs, output, elements, stream);
    case DType::u32:
      return launch_op<std::uint32_t>(op, inputs, output, elements, stream);
    case DType::i64:
      return launch_op<std::int64_t>(op, inputs, output, elements, stream);
    case DType::u64:
      return launch_op<std::uint64_t>(op, inputs, output, elements, stream);
    case DType::u16:
      return launch_op<std::uint16_t>(op, inputs, output, elements, stream);
    case DType::u8:
      return launch_op<std::uint8_t>(op, inputs, output, elements, stream);
  }
}

}  // namespace

void reduce_on_device(DType dtype, ReduceOp op, std::span<const void* const> inputs, void* output,
                      std::int64_t elements, device::StreamRef stream) {
  FOURFOLD_EXPECT(!inputs.empty() && std::ssize(inputs) <= most_device_ranks);
  if (elements == 0) {
    return;
  }
  Inputs by_value{};
  by_value.count = static_cast<int>(inputs.size());
  std::copy(inputs.begin(), inputs.end(), by_value.data);
  launch_type(dtype, op, by_value, output, elements, native(stream));
  device::check_cuda(cudaGetLastError(), "cudaLaunchKernel", elements * size_in_bytes(dtype));
}

}  // namespace fourfold::comm
