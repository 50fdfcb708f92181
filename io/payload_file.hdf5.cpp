// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload_file.hpp"

#include "file.hpp"
#include "hdf5.hpp"

#include <fourfold/base/contract.hpp>

#include <cerrno>

namespace fourfold::io {
namespace {

constexpr const char* table_path = "/_crc32c";

std::span<const std::int64_t> values_of(const Shape& shape) {
  return {shape.begin(), shape.rank()};
}

std::uint64_t offset_of(hid_t dataset) {
  const haddr_t offset = H5Dget_offset(dataset);
  h5::check(offset == HADDR_UNDEF ? -1 : 0, "H5Dget_offset");
  return offset;
}

h5::Id create_dataset(hid_t file, const std::string& path, hid_t type, hid_t space) {
  const h5::Id creation = h5::contiguous_creation();
  return h5::own(
      H5Dcreate2(file, path.c_str(), type, space, H5P_DEFAULT, creation.get(), H5P_DEFAULT),
      "H5Dcreate2");
}

void create_datasets(hid_t file, std::int64_t step, std::span<PayloadDataset> datasets,
                     std::uint64_t chunks, PayloadLayout& layout) {
  h5::write_attribute(file, "format", "fourfold checkpoint payload 1");
  h5::write_attribute(file, "step", {&step, 1});
  for (PayloadDataset& wanted : datasets) {
    h5::create_group(file, wanted.path.substr(0, wanted.path.rfind('/')));
    const h5::Id type = h5::type_of(wanted.dtype);
    const h5::Id space = h5::space_of(wanted.box.extent);
    const h5::Id dataset = create_dataset(file, wanted.path, type.get(), space.get());
    h5::write_attribute(dataset.get(), "global_shape", values_of(wanted.global_shape));
    h5::write_attribute(dataset.get(), "offset", values_of(wanted.box.offset));
    h5::write_attribute(dataset.get(), "dtype", name(wanted.dtype));
    h5::write_attribute(dataset.get(), "state", name(wanted.state));
    wanted.byte_offset = offset_of(dataset.get());
  }
  const auto entries = static_cast<std::int64_t>(chunks);
  const h5::Id space = h5::simple_space({&entries, 1});
  const h5::Id table = create_dataset(file, table_path, H5T_STD_U32LE, space.get());
  layout.table_offset = offset_of(table.get());
}

}  // namespace

PayloadLayout create_payload_file(const std::filesystem::path& path, std::int64_t step,
                                  std::span<PayloadDataset> datasets, std::uint64_t chunks) {
  FOURFOLD_EXPECT(!datasets.empty());
  PayloadLayout layout;
  h5::writing(path, [&] {
    const h5::Id access = h5::file_access();
    const h5::Id creation = h5::untimed_file_creation();
    h5::Id file =
        h5::own(H5Fcreate(path.c_str(), H5F_ACC_EXCL, creation.get(), access.get()), "H5Fcreate");
    create_datasets(file.get(), step, datasets, chunks, layout);
    h5::check(H5Fclose(file.release()), "H5Fclose");
  });
  OutputFile written = OutputFile::open(path);
  layout.file_bytes = written.size_bytes();
  written.close();
  return layout;
}

void check_payload_file(const std::filesystem::path& path, std::span<const PayloadDataset> datasets,
                        const PayloadLayout& layout) {
  const auto held = h5::lock();
  const h5::Id access(H5Pcreate(H5P_FILE_ACCESS));
  const h5::Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
  const auto stands_at = [&](const std::string& dataset_path, std::uint64_t offset) {
    const h5::Id dataset(H5Dopen2(file.get(), dataset_path.c_str(), H5P_DEFAULT));
    return dataset && H5Dget_offset(dataset.get()) == offset &&
           offset + H5Dget_storage_size(dataset.get()) <= layout.file_bytes;
  };
  bool good = file && stands_at(table_path, layout.table_offset);
  for (const PayloadDataset& dataset : datasets) {
    good = good && stands_at(dataset.path, dataset.byte_offset);
  }
  if (!good) {
    cannot_write(path, "HDF5 metadata is not what was written", EIO);
  }
}

}  // namespace fourfold::io
