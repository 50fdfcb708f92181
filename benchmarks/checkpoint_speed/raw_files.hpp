// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace fourfold::benchmarks {

/// What a program without checksums, digests or a format would do with the same bytes: a plain loop
/// of 4 MiB calls. @throws SystemError with the reason

/// Writes a new file of one span after the other, then fdatasync. @param reserves  fallocate before
void write_raw(const std::filesystem::path& file, std::span<const std::span<const std::byte>> spans,
               bool reserves);

/// Fills the spans with bytes of the files, taken for one after the other, from byte `begin` on.
void read_raw(std::span<const std::filesystem::path> files, std::uint64_t begin,
              std::span<const std::span<std::byte>> spans);

/// Lets go of the pages of all files below the folder: what reads them next reads the disk.
void drop_pages(const std::filesystem::path& folder);

}  // namespace fourfold::benchmarks
