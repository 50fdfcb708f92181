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

/// What the file-access list carries to open().
struct Target {
  SparseImage* image;
};

/// HDF5's part of an open file first, as it demands.
struct OpenImage {
  H5FD_t base;
  SparseImage* image;
  haddr_t allocated;
};

OpenImage& of(H5FD_t* file) {
  return *reinterpret_cast<OpenImage*>(file);
}
const OpenImage& of(const H5FD_t* file) {
  return *reinterpret_cast<const OpenImage*>(file);
}

H5FD_t* open_image(const char*, unsigned, hid_t access, haddr_t) {
  const auto* target = static_cast<const Target*>(H5Pget_driver_info(access));
  auto* file = target == nullptr ? nullptr : new (std::nothrow) OpenImage{{}, target->image, 0};
  return file == nullptr ? nullptr : &file->base;
}

herr_t close_image(H5FD_t* file) {
  delete &of(file);
  return 0;
}

herr_t query(const H5FD_t*, unsigned long* flags) {
  *flags =
      H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA;
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
  return of(file).image->size_bytes();
}

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t bytes, void* data) {
  of(file).image->read(offset, {static_cast<std::byte*>(data), bytes});
  return 0;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, size_t bytes, const void* data) {
  SparseImage& image = *of(file).image;
  image.write(offset, {static_cast<const std::byte*>(data), bytes});
  image.set_size_bytes(std::max(image.size_bytes(), offset + bytes));
  return 0;
}

herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  of(file).image->set_size_bytes(of(file).allocated);
  return 0;
}

H5FD_class_t driver_class() {
  H5FD_class_t driver = {};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = 600;  // 512 and above are for drivers outside the library
#endif
  driver.name = "fourfold_sparse_image";
  driver.maxaddr = HADDR_MAX;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(Target);
  driver.open = open_image;
  driver.close = close_image;
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

}  // namespace

SparseImage made_in_memory(const std::function<void(hid_t file)>& fill) {
  const auto held = lock();
  SparseImage image;
  const H5FD_class_t driver = driver_class();
  const Id driver_id = own(H5FDregister(&driver), "H5FDregister");
  const Id access = file_access();
  const Target target{&image};
  check(H5Pset_driver(access.get(), driver_id.get(), &target), "H5Pset_driver");
  const Id creation = untimed_file_creation();
  Id file = own(H5Fcreate("in memory", H5F_ACC_TRUNC, creation.get(), access.get()), "H5Fcreate");
  fill(file.get());
  check(H5Fclose(file.release()), "H5Fclose");
  return image;
}

}  // namespace fourfold::io::h5
