// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5/hdf5.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

namespace fourfold::io::h5 {
namespace {

/// A small dataset's start is not aligned; larger ones begin at a page, which direct I/O wants. A
/// payload file has one writer, so there are no stripes of others to stay clear of.
constexpr hsize_t alignment_threshold_bytes = 64 << 10;
constexpr hsize_t alignment_bytes = 4096;

Id float16_type(std::size_t exponent_bits, std::size_t mantissa_bits) {
  Id type = own(H5Tcopy(H5T_IEEE_F32LE), "H5Tcopy");
  check(H5Tset_fields(type.get(), 15, mantissa_bits, exponent_bits, 0, mantissa_bits),
        "H5Tset_fields");
  check(H5Tset_size(type.get(), 2), "H5Tset_size");
  check(H5Tset_ebias(type.get(), (std::size_t{1} << (exponent_bits - 1)) - 1), "H5Tset_ebias");
  return type;
}

Id copy_of(hid_t type) {
  return own(H5Tcopy(type), "H5Tcopy");
}

/// Where memory ends in HDF5 (1.10) it crashes as it sets itself up, and later on its errors look
/// like those of damaged files: there has to be some before it is called. @throws std::bad_alloc
void require_room() {
  constexpr std::size_t needed_bytes = std::size_t{32} << 20;  // not touched, so that it costs none
  const std::unique_ptr<void, void (*)(void*)> room(std::malloc(needed_bytes), std::free);
  if (room == nullptr) {
    throw std::bad_alloc();
  }
}

}  // namespace

std::unique_lock<std::mutex> lock() {
  static std::mutex mutex;
  std::unique_lock<std::mutex> held(mutex);
  require_room();
  // All that is opened here is closed by its owner. Its exit handlers may crash, too, and the exit
  // code would be that of a crash.
  [[maybe_unused]] static const bool has_no_handlers = H5dont_atexit() >= 0;
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  return held;
}

herr_t check(herr_t result, const char* call) {
  if (result < 0) {
    throw SystemError(ExitCode::internal, format_message("HDF5 failed in {}", call));
  }
  return result;
}

Id own(hid_t id, const char* call) {
  check(id < 0 ? -1 : 0, call);
  return Id(id);
}

Id type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return copy_of(H5T_IEEE_F32LE);
    case DType::bf16:
      return float16_type(8, 7);
    case DType::f16:
      return float16_type(5, 10);
    case DType::f64:
      return copy_of(H5T_IEEE_F64LE);
    case DType::i32:
      return copy_of(H5T_STD_I32LE);
    case DType::i64:
      return copy_of(H5T_STD_I64LE);
    case DType::u8:
      return copy_of(H5T_STD_U8LE);
    case DType::u16:
      return copy_of(H5T_STD_U16LE);
    case DType::u32:
      return copy_of(H5T_STD_U32LE);
    case DType::u64:
      break;
  }
  return copy_of(H5T_STD_U64LE);
}

Id text_type(std::size_t bytes) {
  FOURFOLD_EXPECT(bytes > 0);
  Id type = copy_of(H5T_C_S1);
  check(H5Tset_size(type.get(), bytes), "H5Tset_size");
  check(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "H5Tset_strpad");
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), "H5Tset_cset");
  return type;
}

Id simple_space(std::span<const std::int64_t> dims) {
  std::vector<hsize_t> extents(dims.begin(), dims.end());
  return own(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr),
             "H5Screate_simple");
}

Id space_of(const Shape& shape) {
  if (shape.rank() == 0) {
    return own(H5Screate(H5S_SCALAR), "H5Screate");
  }
  return simple_space({shape.begin(), shape.rank()});
}

Id file_access() {
  Id access = own(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate");
  check(H5Pset_libver_bounds(access.get(), H5F_LIBVER_V110, H5F_LIBVER_V110),
        "H5Pset_libver_bounds");
  check(H5Pset_alignment(access.get(), alignment_threshold_bytes, alignment_bytes),
        "H5Pset_alignment");
  return access;
}

Id untimed_file_creation() {
  Id creation = own(H5Pcreate(H5P_FILE_CREATE), "H5Pcreate");
  check(H5Pset_obj_track_times(creation.get(), 0), "H5Pset_obj_track_times");
  return creation;
}

Id untimed_group_creation() {
  Id creation = own(H5Pcreate(H5P_GROUP_CREATE), "H5Pcreate");
  check(H5Pset_obj_track_times(creation.get(), 0), "H5Pset_obj_track_times");
  return creation;
}

Id contiguous_creation() {
  Id creation = own(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  check(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "H5Pset_layout");
  check(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time");
  check(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "H5Pset_fill_time");
  check(H5Pset_obj_track_times(creation.get(), 0), "H5Pset_obj_track_times");
  return creation;
}

void create_group(hid_t file, const std::string& path) {
  const Id creation = untimed_group_creation();
  // Groups are made one by one: those that HDF5 makes on the way would carry times.
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    const htri_t exists = H5Lexists(file, part.c_str(), H5P_DEFAULT);
    check(exists, "H5Lexists");
    if (exists == 0) {
      own(H5Gcreate2(file, part.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), "H5Gcreate2");
    }
    if (slash == std::string::npos) {
      return;
    }
  }
}

Id create_dataset(hid_t file, const std::string& path, const Id& type, const Id& space) {
  if (const std::size_t slash = path.rfind('/'); slash != 0 && slash != std::string::npos) {
    create_group(file, path.substr(0, slash));
  }
  const Id creation = contiguous_creation();
  return own(H5Dcreate2(file, path.c_str(), type.get(), space.get(), H5P_DEFAULT, creation.get(),
                        H5P_DEFAULT),
             "H5Dcreate2");
}

void write_dataset(hid_t file, const std::string& path, const Id& type, const Id& space,
                   const void* data) {
  const Id dataset = create_dataset(file, path, type, space);
  check(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, data), "H5Dwrite");
}

std::uint64_t offset_of(hid_t dataset) {
  const haddr_t offset = H5Dget_offset(dataset);
  check(offset == HADDR_UNDEF ? -1 : 0, "H5Dget_offset");
  return offset;
}

void write_attribute(hid_t object, const char* name, std::span<const std::int64_t> values) {
  const std::int64_t count = std::ssize(values);
  const Id space = count == 0 ? own(H5Screate(H5S_NULL), "H5Screate") : simple_space({&count, 1});
  const Id attribute = own(
      H5Acreate2(object, name, H5T_STD_I64LE, space.get(), H5P_DEFAULT, H5P_DEFAULT), "H5Acreate2");
  if (count != 0) {
    check(H5Awrite(attribute.get(), H5T_NATIVE_INT64, values.data()), "H5Awrite");
  }
}

void write_attribute(hid_t object, const char* name, std::string_view text) {
  const Id type = text_type(std::max<std::size_t>(text.size(), 1));
  const Id space = own(H5Screate(H5S_SCALAR), "H5Screate");
  const Id attribute = own(
      H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT), "H5Acreate2");
  const std::string padded = text.empty() ? std::string(1, '\0') : std::string(text);
  check(H5Awrite(attribute.get(), type.get(), padded.data()), "H5Awrite");
}

}  // namespace fourfold::io::h5
