// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What calls of the CUDA runtime go through, in this room and those that have its door
/// (fourfold::device_cuda): each failure says which device, which call and how many bytes, and ends
/// a program with the code of what it was.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

namespace fourfold::device {

/// Makes the device that this process has taken the current one of the calling thread, for which
/// CUDA otherwise takes the first. @throws UserError (config) without driver or device
void bind_thread();

/// "GPU 0 (NVIDIA H100 80GB HBM3)": this process's, as far as it can still be asked.
std::string described_device();

/// Whether a restart on other nodes can mend it.
bool is_fault_of_node(cudaError_t error);

/// For who calls a library that ends the process where CUDA says that the device has failed: to be
/// asked first. A kernel's failure is told by the next call, whichever that is.
/// @throws SystemError as check_cuda()
void check_device();

/// @param call   "cudaMemcpyAsync"
/// @param bytes  that the call was about; 0: none
/// @throws SystemError when `result` is no success: config when memory is short; node_fault when
///   the device or its driver failed; internal for what only we can have done wrong
void check_cuda(cudaError_t result, const char* call, std::size_t bytes = 0);

/// What follows "... failed" where the memory of the device of this thread is short, also that of a
/// library: how much is free, and what the program can do (base/error.hpp).
std::string out_of_memory_advice();

/// Of a query: false for "not ready", which is no failure, and which no later call is to tell as
/// one. @throws SystemError as check_cuda()
bool is_ready(cudaError_t result, const char* call);

/// "9.0" of 9000, which is how CUDA numbers its versions.
std::string cuda_version_text(int version);

/// The device that this process has taken, or will have bound its threads to.
int taken_device() noexcept;

}  // namespace fourfold::device
