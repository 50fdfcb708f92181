// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Numbers and texts out of an HDF5 file that nobody has vouched for. Include only from *.hdf5.cpp
/// files.
#pragma once

#include "disk/file.hpp"
#include "hdf5/hdf5.hpp"

#include <fourfold/base/message.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace fourfold::io {

/// Reads datasets and attributes of exactly expected types and sizes and remembers the first that
/// is not so; yields harmless values then. Borrows the file.
class TableReader {
 public:
  explicit TableReader(hid_t file) : file_(file) {}

  const Defect& defect() const noexcept { return defect_; }
  void fail(const std::string& what) {
    if (!defect_) {
      defect_ = what;
    }
  }

  /// Rows of a one-dimensional dataset; 0 when there is none.
  std::size_t rows(const std::string& path);
  /// A column of `count` cells, each a number or a std::array of numbers.
  template <class Cell>
  std::vector<Cell> column(const std::string& path, std::size_t count);
  std::vector<std::string> text_column(const std::string& path, std::size_t count);
  template <class T>
  T scalar(const std::string& path);

  /// Names of the links in a group, which must lead to something in the file itself.
  std::vector<std::string> names(const std::string& group_path);
  bool has(const std::string& group_path, const char* name);

  /// Attributes of the group or dataset `path`, as h5::write_attribute makes them.
  std::vector<std::int64_t> integers(const std::string& path, const char* attribute);
  std::string text(const std::string& path, const char* attribute);
  /// One number of at least `least`.
  std::int64_t integer(const std::string& path, const char* attribute, std::int64_t least);

  /// A dataset; null, and a defect, when there is none.
  h5::Id open(const std::string& path);
  /// Empty for scalars and for what is no dataset.
  static std::vector<hsize_t> dims_of(hid_t dataset);
  static bool is_stored_as(hid_t dataset, hid_t type);

 private:
  static constexpr std::size_t most_rows = std::size_t{1} << 28;
  static constexpr std::size_t most_text_bytes = 4096;
  static constexpr hssize_t most_integers = 64;

  h5::Id attribute_of(const std::string& path, const char* attribute);

  hid_t file_;
  Defect defect_;
};

template <class Cell>
std::vector<Cell> TableReader::column(const std::string& path, std::size_t count) {
  std::vector<hsize_t> dims{count};
  DType dtype{};
  if constexpr (std::is_arithmetic_v<Cell>) {
    dtype = dtype_of<Cell>;
  } else {
    dims.push_back(std::tuple_size_v<Cell>);
    dtype = dtype_of<typename Cell::value_type>;
  }
  std::vector<Cell> cells(count);
  const h5::Id dataset = open(path);
  const h5::Id type = h5::type_of(dtype);
  if (!dataset || dims_of(dataset.get()) != dims || !is_stored_as(dataset.get(), type.get()) ||
      H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()) < 0) {
    fail(format_message("{} is not a column of {} rows", path, count));
    return std::vector<Cell>(count);
  }
  return cells;
}

template <class T>
T TableReader::scalar(const std::string& path) {
  T value{};
  const h5::Id dataset = open(path);
  const h5::Id type = h5::type_of(dtype_of<T>);
  if (!dataset || !dims_of(dataset.get()).empty() || !is_stored_as(dataset.get(), type.get()) ||
      H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0) {
    fail(format_message("{} is not a number", path));
  }
  return value;
}

}  // namespace fourfold::io
