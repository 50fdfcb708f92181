// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/io/checkpoint_plan.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace fourfold::io {

/// One dataset that a payload file is to have.
struct PayloadDataset {
  std::string path;  ///< "/t/<name>/<state>/b<k>"
  TensorState state = TensorState::weight;
  DType dtype = DType::f32;
  Shape global_shape;
  Box box;
  std::uint64_t byte_offset = 0;  ///< out: where its bytes lie in the file
};

struct PayloadLayout {
  std::uint64_t file_bytes = 0;
  std::uint64_t table_offset = 0;  ///< of /_crc32c, `chunks` little-endian u32
};

/// Creates an HDF5 file with these datasets and a /_crc32c of `chunks` entries, all without
/// contents, and says where the bytes belong. The same input gives the same bytes.
/// @throws SystemError (cannot_write)
PayloadLayout create_payload_file(const std::filesystem::path& path, std::int64_t step,
                                  std::span<PayloadDataset> datasets, std::uint64_t chunks);

/// Opens the file anew and finds every dataset where it was put. HDF5 reports success when its own
/// metadata could not be written to a full disk; its checksums tell now.
/// @throws SystemError (cannot_write)
void check_payload_file(const std::filesystem::path& path, std::span<const PayloadDataset> datasets,
                        const PayloadLayout& layout);

}  // namespace fourfold::io
