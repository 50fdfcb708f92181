// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload_file.hpp"

#include "hdf5.hpp"

#include <fourfold/base/contract.hpp>

namespace fourfold::io {
namespace {

constexpr const char* table_path = "/_crc32c";

std::span<const std::int64_t> values_of(const Shape& shape) {
  return {shape.begin(), shape.rank()};
}

/// @return where the CRC table lies
std::uint64_t create_datasets(hid_t file, std::int64_t step, std::span<PayloadDataset> datasets,
                              std::uint64_t chunks) {
  h5::write_attribute(file, "format", "fourfold checkpoint payload 1");
  h5::write_attribute(file, "step", {&step, 1});
  for (PayloadDataset& wanted : datasets) {
    const h5::Id dataset = h5::create_dataset(file, wanted.path, h5::type_of(wanted.dtype),
                                              h5::space_of(wanted.box.extent));
    h5::write_attribute(dataset.get(), "global_shape", values_of(wanted.global_shape));
    h5::write_attribute(dataset.get(), "offset", values_of(wanted.box.offset));
    h5::write_attribute(dataset.get(), "dtype", name(wanted.dtype));
    h5::write_attribute(dataset.get(), "state", name(wanted.state));
    wanted.byte_offset = h5::offset_of(dataset.get());
  }
  const auto entries = static_cast<std::int64_t>(chunks);
  const h5::Id table = h5::create_dataset(file, table_path, h5::type_of(DType::u32),
                                          h5::simple_space({&entries, 1}));
  return h5::offset_of(table.get());
}

}  // namespace

PayloadSchema make_payload_schema(std::int64_t step, std::span<PayloadDataset> datasets,
                                  std::uint64_t chunks) {
  FOURFOLD_EXPECT(!datasets.empty());
  PayloadSchema schema;
  schema.image = h5::made_in_memory(
      [&](hid_t file) { schema.table_offset = create_datasets(file, step, datasets, chunks); });
  return schema;
}

}  // namespace fourfold::io
