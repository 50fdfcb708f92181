// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The few HDF5 calls that checkpoints need, checked. HDF5 here is a schema: payload bytes never
/// pass through it. Include only from *.hdf5.cpp files.
#pragma once

#include "disk/file.hpp"
#include "hdf5/sparse_image.hpp"

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/shape.hpp>
#include <fourfold/base/unique_handle.hpp>

#include <hdf5.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io::h5 {

struct IdTraits {
  using native_type = hid_t;
  static native_type null() noexcept { return -1; }
  static void close(native_type id) noexcept { H5Idec_ref(id); }
};
/// Owns an identifier of any kind (file, group, dataset, space, type, property list).
using Id = UniqueHandle<IdTraits>;

/// HDF5 is not thread-safe as Debian builds it, and with the threads transport ranks are threads:
/// every use of HDF5 holds this lock. Also silences HDF5's own printing of errors.
std::unique_lock<std::mutex> lock();

/// @throws SystemError (internal) naming the call when `result` is negative: in memory nothing of
/// ours can fail but for a bug or for lack of memory
herr_t check(herr_t result, const char* call);
/// The same for identifiers, which it takes over.
Id own(hid_t id, const char* call);

/// The bytes of an HDF5 file that `fill` has filled, made without touching a disk. Holds the lock.
SparseImage made_in_memory(const std::function<void(hid_t file)>& fill);

/// An HDF5 file to read, through `file`, which must outlive it: whatever is found in it, no other
/// file is opened. Null when it is none. Hold the lock.
Id opened(const InputFile& file);

/// Type in files and in memory: little-endian; bf16 and f16 as floating-point types of their own.
Id type_of(DType dtype);
/// Fixed-length text, padded with zero bytes. @pre bytes > 0
Id text_type(std::size_t bytes);
Id simple_space(std::span<const std::int64_t> dims);
/// A scalar space for rank 0.
Id space_of(const Shape& shape);

/// File access: version bounds 1.10 (so that metadata is checksummed) and the alignment that
/// payloads want; file creation and groups without times.
Id file_access();
Id untimed_file_creation();
Id untimed_group_creation();
/// Contiguous, allocated at once, never filled, without times.
Id contiguous_creation();

/// Creates a group and those above it where missing.
void create_group(hid_t file, const std::string& path);
/// Creates a dataset as contiguous_creation() says, and the groups above it where missing.
Id create_dataset(hid_t file, const std::string& path, const Id& type, const Id& space);
/// Creates one of these bytes, which lie as `type` says.
void write_dataset(hid_t file, const std::string& path, const Id& type, const Id& space,
                   const void* data);
/// Where a contiguous dataset that holds something begins in its file.
std::uint64_t offset_of(hid_t dataset);
/// Attributes: a list of 64-bit integers (an empty one has a null space), one text.
void write_attribute(hid_t object, const char* name, std::span<const std::int64_t> values);
void write_attribute(hid_t object, const char* name, std::string_view text);

}  // namespace fourfold::io::h5
