// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5/hdf5.hpp"
#include "hdf5/sparse_image.hpp"

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // HDF5 1.14 moved the interface of drivers here
#endif

#include <algorithm>
#include <new>

namespace fourfold::io::h5 {
namespace {

/// HDF5's part of an open file first, as it demands; then what its bytes are: one that is made in
/// memory, or one that is read.
struct OpenFile {
  H5FD_t base;
  SparseImage* image;
  const InputFile* input;
  haddr_t allocated;
};

OpenFile& of(H5FD_t* file) {
  return *reinterpret_cast<OpenFile*>(file);
}
const OpenFile& of(const H5FD_t* file) {
  return *reinterpret_cast<const OpenFile*>(file);
}

H5FD_t* open_file(const char*, unsigned flags, hid_t access, haddr_t) {
  const auto* given = static_cast<const OpenFile*>(H5Pget_driver_info(access));
  if (given == nullptr ||  // an external link, or a wish to write
      (given->input != nullptr && flags != H5F_ACC_RDONLY)) {
    return nullptr;
  }
  auto* file = new (std::nothrow) OpenFile(*given);
  return file == nullptr ? nullptr : &file->base;
}

herr_t close_file(H5FD_t* file) {
  delete &of(file);
  return 0;
}

herr_t query(const H5FD_t* file, unsigned long* flags) {
  constexpr unsigned long of_image =
      H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
  *flags = file != nullptr && of(file).image == nullptr ? 0 : of_image;
  return 0;
}

haddr_t allocated(const H5FD_t* file, H5FD_mem_t) {
  return of(file).allocated;
}

herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t bytes) {
  of(file).allocated = bytes;
  return 0;
}

haddr_t size(const H5FD_t* file, H5FD_mem_t) {
  return of(file).image != nullptr ? of(file).image->size_bytes() : of(file).input->size_bytes();
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t count, void* data) {
  const std::span to(static_cast<std::byte*>(data), count);
  if (of(file).image == nullptr) {
    return of(file).input->read_at(offset, to) ? -1 : 0;
  }
  of(file).image->read(offset, to);
  return 0;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t count, const void* data) {
  SparseImage* const image = of(file).image;
  if (image == nullptr) {
    return -1;
  }
  image->write(offset, {static_cast<const std::byte*>(data), count});
  image->set_size_bytes(std::max(image->size_bytes(), offset + count));
  return 0;
}

herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  if (SparseImage* const image = of(file).image) {
    image->set_size_bytes(of(file).allocated);
  }
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 600;  // 512 and above are for drivers outside the library
#endif
  driver.name = "fourfold_bytes";
  driver.maxaddr = HADDR_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(OpenFile);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query;
  driver.get_eoa = allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = size;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  const H5FD_mem_t free_lists[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(free_lists), std::end(free_lists), std::begin(driver.fl_map));
  return driver;
}

/// The list keeps the driver alive.
void set_driver(const Id& access, const OpenFile& file) {
  const H5FD_class_t driver = driver_class();
  const Id driver_id = own(H5FDregister(&driver), "H5FDregister");
  check(H5Pset_driver(access.get(), driver_id.get(), &file), "H5Pset_driver");
}

}  // namespace

SparseImage made_in_memory(const std::function<void(hid_t file)>& fill) {
  const auto held = lock();
  SparseImage image;
  const Id access = file_access();
  set_driver(access, {{}, &image, nullptr, 0});
  const Id creation = untimed_file_creation();
  Id file = own(H5Fcreate("in memory", H5F_ACC_TRUNC, creation.get(), access.get()), "H5Fcreate");
  fill(file.get());
  check(H5Fclose(file.release()), "H5Fclose");
  return image;
}

Id opened(const InputFile& file) {
  const Id access = own(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  set_driver(access, {{}, nullptr, &file, 0});
  return Id(H5Fopen("a payload", H5F_ACC_RDONLY, access.get()));
}

}  // namespace fourfold::io::h5
