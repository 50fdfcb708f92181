// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>

namespace fourfold::benchmarks {

/// What a disk does when nothing is computed, in bytes per second.
struct DiskRates {
  double write = 0;
  double read = 0;
  double both = 0;  ///< blocks are read and written back: bytes of both together
  double best() const { return std::max({write, read, both}); }
};

/// Eight threads, 8 MiB at a time past the page cache, in a file of its own.
DiskRates raw_streaming_rates(const std::filesystem::path& directory, std::uint64_t bytes);

}  // namespace fourfold::benchmarks
