// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A GPU that is no GPU: CUDA's runtime and driver as far as fourfold calls them, over memory and
/// threads of the host. So that code for devices runs in tests where there is no GPU, kernels
/// included (kernels/device), and is wrong there in the same way. Only what cuBLASLt, cuDNN and our
/// own CUDA do is done by others: products and the sums of ranks that share a device as on a
/// host, cuDNN's attention by the portable kernel.
///
/// - Work is as late as it is allowed to be: it happens when somebody waits for it, and only as far
///   as that needs. Who reads what was not waited for, or writes over what is still to be read,
///   gets other bits.
/// - Device memory may be touched by the work of streams only: the host gets a SIGSEGV. (Not while
///   another thread of the process runs such work, so one rank per process sees most.) Work that
///   cudaLaunchHostFunc() enqueues counts as the host.
/// - Memory comes full of NaNs and goes back so.
/// - Streams that are captured record, and refuse what CUDA refuses then and more (capture.hpp);
///   each launch of the graph enqueues copies of what was recorded, in its order.
/// - Copies from pageable memory have read it when the call returns, those from pinned memory read
///   it late.
///
/// When a process waits for something else than the device, such as a message, its streams go on
/// by themselves after a while, as those of a GPU do.
///
/// NCCL is emulated likewise, among processes of one machine: their sends wait until they are
/// received, their sums go round a ring. A peer that has died breaks its communicators. What NCCL
/// reads and writes in the background (names, the places of children) must outlast it. An operation
/// whose buffers are registered on some ranks only ends the process (nccl_traffic.hpp counts them).
///
/// The environment says what the GPU is like:
///   FOURFOLD_EMULATED_GPUS        how many there are (1); 0: none; no-driver, old-driver: why none
///   FOURFOLD_EMULATED_GPU_MIB     memory of each (4096)
///   FOURFOLD_EMULATED_GPU_SM      compute capability (90)
///   FOURFOLD_EMULATED_GPU_EAGER   work happens at once
///   FOURFOLD_EMULATED_GPU_FAIL    CALL:N:ERROR: the Nth call of CALL, and all later ones, return
///                                 ERROR (of CUDA, or of NCCL: its number)
///   FOURFOLD_EMULATED_GPU_STAGES  a copy from pageable memory blocks until all before it on its
///                                 stream is done, as it may
///   FOURFOLD_EMULATED_NCCL_SAYS   what ncclGetLastError() gives
///   FOURFOLD_EMULATED_NCCL_VERSION  as ncclGetVersion() gives it: 22809
///   FOURFOLD_EMULATED_NCCL_BREAKS_S  all communicators break after so many seconds
///   FOURFOLD_EMULATED_NCCL_SPLITS_S  a split takes so many seconds
///   FOURFOLD_EMULATED_NCCL_BLIND  NCCL does not notice that a peer has died
#pragma once

#include <cstddef>
#include <functional>

namespace fourfold::emulated {

/// Enqueues a kernel: `run` may touch device memory. A failure is there for cudaGetLastError(), as
/// that of a launch is, and may be planned as one of cudaLaunchKernel.
/// @param stream  a cudaStream_t
void launch(void* stream, std::function<void()> run);

/// Whether an address is in the memory of an emulated device.
bool is_device_memory(const void* address);

/// How many events this process has made so far: what is enqueued again and again should use its
/// own again.
std::size_t events_made();

}  // namespace fourfold::emulated
