// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What goes wrong with devices, planned: the emulated one does as the environment says. Usage:
// device_failures EXPECTATION, one word for each way. Exit code 0: the error was as it should be.
#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/stream.hpp>

#include <cstdio>
#include <cstdlib>

using namespace fourfold;
using namespace fourfold::device;

/// Takes the device as rank argv[1] of argv[2], with all kernels if there is an argv[3], and copies
/// something; prints the error, and ends with its code.
int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) {
    return 64;
  }
  if (argc == 4) {
    load_kernels_first();
  }
  try {
    const DeviceFacts facts =
        take_device({.local_rank = std::atoi(argv[1]), .ranks_on_host = std::atoi(argv[2])});
    const Stream stream;
    const Buffer from(1000);
    const Buffer to(1000);
    const Buffer back(1000, MemoryKind::pinned);
    copy(to.data(), from.data(), 1000, stream);
    copy(back.data(), to.data(), 1000, stream);
    stream.ref().synchronize();
    std::printf("GPU %d, %s, kernels %s\n", facts.index, facts.bus_id.c_str(),
                facts.loads_kernels_first ? "first" : "late");
    return 0;
  } catch (const Error& error) {
    std::printf("%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
