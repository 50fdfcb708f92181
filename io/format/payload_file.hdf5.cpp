// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/payload_file.hpp"

#include <fourfold/base/contract.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fourfold::io {
namespace {

constexpr const char* table_path = "/_crc32c";

std::span<const std::int64_t> values_of(const Shape& shape) {
  return {shape.begin(), shape.rank()};
}

void write_head(hid_t file, const PayloadDescription& head) {
  h5::write_attribute(file, "format", "fourfold checkpoint payload 1");
  h5::write_attribute(file, "step", {&head.step, 1});
  std::array<std::int64_t, comm::axis_count> degrees{};
  std::ranges::transform(comm::all_axes, degrees.begin(),
                         [&head](comm::Axis axis) { return head.mesh[axis]; });
  h5::write_attribute(file, "mesh", degrees);
  h5::write_attribute(file, "files", {&head.files, 1});
  h5::write_attribute(file, "save", head.save);
}

/// @return where its bytes belong
std::uint64_t write_extent(hid_t file, const PayloadExtent& extent) {
  const StoredTensor& tensor = extent.tensor;
  const h5::Id dataset =
      h5::create_dataset(file, extent_path(tensor.id, extent.number), h5::type_of(tensor.dtype),
                         h5::space_of(extent.box.extent));
  const std::int64_t first_chunk = extent.first_chunk;
  h5::write_attribute(dataset.get(), "global_shape", values_of(tensor.shape));
  h5::write_attribute(dataset.get(), "offset", values_of(extent.box.offset));
  h5::write_attribute(dataset.get(), "dtype", name(tensor.dtype));
  h5::write_attribute(dataset.get(), "state", tensor.id.state.name());
  h5::write_attribute(dataset.get(), "first_chunk", {&first_chunk, 1});
  return h5::offset_of(dataset.get());
}

/// A tensor without elements is its group, with what else its datasets would say.
void write_empty_tensors(hid_t file, std::span<const StoredTensor> tensors) {
  for (const StoredTensor& tensor : tensors) {
    const std::string path = "/t/" + tensor.id.str();
    h5::create_group(file, path);
    const h5::Id group = h5::own(H5Gopen2(file, path.c_str(), H5P_DEFAULT), "H5Gopen2");
    h5::write_attribute(group.get(), "global_shape", values_of(tensor.shape));
    h5::write_attribute(group.get(), "dtype", name(tensor.dtype));
    h5::write_attribute(group.get(), "state", tensor.id.state.name());
  }
}

/// @return where the table lies
std::uint64_t create_table(hid_t file, std::uint64_t chunks) {
  const std::int64_t entries = chunks;
  const h5::Id table = h5::create_dataset(file, table_path, h5::type_of(DType::u32),
                                          h5::simple_space({&entries, 1}));
  return h5::offset_of(table.get());
}

}  // namespace

SparseImage make_payload_image(const PayloadDescription& payload,
                               std::vector<std::uint64_t>& byte_offsets, CrcTable& table) {
  FOURFOLD_EXPECT(!payload.extents.empty());
  return h5::made_in_memory([&](hid_t file) {
    write_head(file, payload);
    for (const PayloadExtent& extent : payload.extents) {
      byte_offsets.push_back(write_extent(file, extent));
    }
    table.byte_offset = create_table(file, table.chunks);
    write_empty_tensors(file, payload.empty_tensors);
    if (payload.scalars) {
      write_scalars(file, *payload.scalars);
    }
  });
}

}  // namespace fourfold::io
