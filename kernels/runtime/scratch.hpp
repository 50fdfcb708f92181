// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstddef>
#include <cstdint>

namespace fourfold::kernels {

/// At least `bytes` of device memory for partial results of one kernel, aligned to 256 bytes, not
/// initialised. Belongs to the calling host thread and `stream`, and is handed out again by the
/// next call with the same stream: work already enqueued there is done with it by then. Grows,
/// never shrinks: nothing is allocated once the largest size has been seen.
void* scratch(std::size_t bytes, device::StreamRef stream);
/// The same for `count` numbers.
template <class T>
T* scratch(std::int64_t count, device::StreamRef stream) {
  return static_cast<T*>(scratch(count * sizeof(T), stream));
}

/// The same, other memory than scratch()'s: for results of a library that itself asks for
/// scratch().
void* staging(std::size_t bytes, device::StreamRef stream);

/// Something else than memory has changed that recorded work holds, of all threads: a product is
/// made another way from here on. Makes recorded_work_version() another number.
void outdate_recorded_work() noexcept;

/// What scratch() is, in memory of the host, for the bodies that compute there; of the calling
/// thread.
void* host_scratch(std::size_t bytes);

}  // namespace fourfold::kernels
