// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5/hdf5.hpp"

#if __has_include(<H5FDdevelop.h>)
#include <H5FDdevelop.h>  // HDF5 1.14 moved the interface of drivers here
#endif

#include <algorithm>
#include <new>

namespace fourfold::io::h5 {
namespace {

/// What the file-access list carries to open().
struct Source {
  const InputFile* file;
};

/// HDF5's part of an open file first, as it demands.
struct OpenInput {
  H5FD_t base;
  const InputFile* file;
  haddr_t allocated;
};

OpenInput& of(H5FD_t* file) {
  return *reinterpret_cast<OpenInput*>(file);
}
const OpenInput& of(const H5FD_t* file) {
  return *reinterpret_cast<const OpenInput*>(file);
}

H5FD_t* open_file(const char*, unsigned flags, hid_t access, haddr_t) {
  const auto* source = static_cast<const Source*>(H5Pget_driver_info(access));
  if (source == nullptr || flags != H5F_ACC_RDONLY) {  // an external link, or a wish to write
    return nullptr;
  }
  auto* file = new (std::nothrow) OpenInput{{}, source->file, 0};
  return file == nullptr ? nullptr : &file->base;
}

herr_t close_file(H5FD_t* file) {
  delete &of(file);
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
  return of(file).file->size_bytes();
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t bytes, void* data) {
  return of(file).file->read_at(offset, {static_cast<std::byte*>(data), bytes}) ? -1 : 0;
}

herr_t refuse_to_write(H5FD_t*, H5FD_mem_t, hid_t, haddr_t, size_t, const void*) {
  return -1;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 601;  // 512 and above are for drivers outside the library
#endif
  driver.name = "fourfold_input_file";
  driver.maxaddr = HADDR_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Source);
  driver.open = open_file;
  driver.close = close_file;
  driver.get_eoa = allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = size;
  driver.read = read;
  driver.write = refuse_to_write;
  const H5FD_mem_t free_lists[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(free_lists), std::end(free_lists), std::begin(driver.fl_map));
  return driver;
}

}  // namespace

Id opened(const InputFile& file) {
  const H5FD_class_t driver = driver_class();
  const Id driver_id = own(H5FDregister(&driver), "H5FDregister");
  const Id access = own(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  const Source source{&file};
  check(H5Pset_driver(access.get(), driver_id.get(), &source), "H5Pset_driver");
  return Id(H5Fopen("a payload", H5F_ACC_RDONLY, access.get()));
}

}  // namespace fourfold::io::h5
