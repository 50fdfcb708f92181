// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"
#include "format/payload_file.hpp"
#include "hdf5/hdf5.hpp"

#include <fourfold/base/contract.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace fourfold::io {
namespace {

/// Rows of the fixed-width columns that hold shapes, offsets and extents.
using Dims = std::array<std::int64_t, Shape::max_rank>;

Dims dims_of(const Shape& shape) {
  Dims dims{};
  std::copy(shape.begin(), shape.end(), dims.begin());
  return dims;
}

/// One column of a table: `value(row)` for each row; rows of arrays become a second dim.
template <class Row, class Value>
void write_column(hid_t file, const std::string& path, const std::vector<Row>& rows,
                  const Value& value) {
  using Cell = decltype(value(rows[0]));
  std::vector<Cell> cells;
  for (const Row& row : rows) {
    cells.push_back(value(row));
  }
  const std::int64_t count = std::ssize(rows);
  if constexpr (std::is_arithmetic_v<Cell>) {
    const h5::Id space = h5::simple_space({&count, 1});
    h5::write_dataset(file, path, h5::type_of(dtype_of<Cell>), space, cells.data());
  } else {
    const std::array<std::int64_t, 2> dims{count, std::tuple_size_v<Cell>};
    const h5::Id space = h5::simple_space(dims);
    h5::write_dataset(file, path, h5::type_of(dtype_of<typename Cell::value_type>), space,
                      cells.data());
  }
}

template <class Row, class Value>
void write_text_column(hid_t file, const std::string& path, const std::vector<Row>& rows,
                       const Value& value) {
  std::size_t width = 1;
  for (const Row& row : rows) {
    width = std::max(width, std::string_view(value(row)).size());
  }
  std::string cells(width * rows.size(), '\0');
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::string_view text = value(rows[row]);
    std::copy(text.begin(), text.end(), cells.begin() + row * width);
  }
  const std::int64_t count = std::ssize(rows);
  const h5::Id space = h5::simple_space({&count, 1});
  h5::write_dataset(file, path, h5::text_type(width), space, cells.data());
}

void write_tables(hid_t file, const Manifest& manifest, const Index& index) {
  h5::create_group(file, "/tensors");
  const auto& tensors = index.tensors;
  write_text_column(file, "/tensors/name", tensors,
                    [](const StoredTensor& t) -> std::string_view { return t.id.name; });
  write_text_column(file, "/tensors/state", tensors,
                    [](const StoredTensor& t) { return t.id.state.name(); });
  write_text_column(file, "/tensors/dtype", tensors,
                    [](const StoredTensor& t) { return name(t.dtype); });
  write_column(file, "/tensors/rank", tensors,
               [](const StoredTensor& t) -> std::int64_t { return t.shape.rank(); });
  write_column(file, "/tensors/shape", tensors,
               [](const StoredTensor& t) { return dims_of(t.shape); });
  write_column(file, "/tensors/digest", tensors, [](const StoredTensor& t) {
    return std::array{t.digest.low, t.digest.high};
  });

  h5::create_group(file, "/files");
  write_text_column(file, "/files/name", manifest.files,
                    [](const StoredFile& f) -> std::string_view { return f.name; });
  write_column(file, "/files/crc_table_offset", index.tables,
               [](const CrcTable& t) { return t.byte_offset; });
  write_column(file, "/files/chunks", index.tables, [](const CrcTable& t) { return t.chunks; });

  h5::create_group(file, "/extents");
  const auto& extents = index.extents;
  write_column(file, "/extents/tensor", extents,
               [](const StoredExtent& e) -> std::int64_t { return e.tensor; });
  write_column(file, "/extents/number", extents, [](const StoredExtent& e) { return e.number; });
  write_column(file, "/extents/file", extents,
               [](const StoredExtent& e) -> std::int64_t { return e.file; });
  write_column(file, "/extents/offset", extents,
               [](const StoredExtent& e) { return dims_of(e.box.offset); });
  write_column(file, "/extents/extent", extents,
               [](const StoredExtent& e) { return dims_of(e.box.extent); });
  write_column(file, "/extents/byte_offset", extents,
               [](const StoredExtent& e) { return e.byte_offset; });
  write_column(file, "/extents/bytes", extents, [](const StoredExtent& e) { return e.bytes; });
  write_column(file, "/extents/first_chunk", extents,
               [](const StoredExtent& e) { return e.first_chunk; });
  write_column(file, "/extents/digest", extents, [](const StoredExtent& e) {
    return std::array{e.digest.low, e.digest.high};
  });
}

/// What an element shows whose payload is missing: NaN, or all bits set for integers, so that it
/// cannot pass for zero.
std::array<std::byte, 8> missing_value(DType dtype) {
  std::array<std::byte, 8> value;
  value.fill(std::byte{0xff});  // a NaN of every floating-point type too
  const auto put = [&](auto nan) { std::memcpy(value.data(), &nan, sizeof nan); };
  if (dtype == DType::f32) {
    put(std::numeric_limits<float>::quiet_NaN());
  } else if (dtype == DType::f64) {
    put(std::numeric_limits<double>::quiet_NaN());
  }
  return value;
}

std::vector<hsize_t> sizes(const Shape& shape) {
  // A view of a scalar has one dim of one element: virtual datasets cannot be scalar.
  return shape.rank() == 0 ? std::vector<hsize_t>{1}
                           : std::vector<hsize_t>(shape.begin(), shape.end());
}

void write_view(hid_t file, const Manifest& manifest, const StoredTensor& tensor,
                std::span<const StoredExtent> extents) {
  const h5::Id type = h5::type_of(tensor.dtype);
  const std::vector<hsize_t> shape = sizes(tensor.shape);
  const h5::Id space = h5::own(
      H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr), "H5Screate_simple");
  const h5::Id creation = h5::own(H5Pcreate(H5P_DATASET_CREATE), "H5Pcreate");
  h5::check(H5Pset_obj_track_times(creation.get(), 0), "H5Pset_obj_track_times");
  const auto fill = missing_value(tensor.dtype);
  h5::check(H5Pset_fill_value(creation.get(), type.get(), fill.data()), "H5Pset_fill_value");
  for (const StoredExtent& extent : extents) {
    const std::vector<hsize_t> count = sizes(extent.box.extent);
    std::vector<hsize_t> start(extent.box.offset.begin(), extent.box.offset.end());
    start.resize(count.size());
    h5::check(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(),
                                  nullptr),
              "H5Sselect_hyperslab");
    const h5::Id source = h5::space_of(extent.box.extent);
    h5::check(H5Pset_virtual(creation.get(), space.get(), manifest.files[extent.file].name.c_str(),
                             extent_path(tensor.id, extent.number).c_str(), source.get()),
              "H5Pset_virtual");
  }
  h5::check(H5Sselect_all(space.get()), "H5Sselect_all");
  h5::create_group(file, "/view/" + tensor.id.name);
  h5::own(H5Dcreate2(file, ("/view/" + tensor.id.str()).c_str(), type.get(), space.get(),
                     H5P_DEFAULT, creation.get(), H5P_DEFAULT),
          "H5Dcreate2");
}

void write_index(hid_t file, const Manifest& manifest, const Index& index) {
  h5::write_attribute(file, "format", "fourfold checkpoint index 1");
  h5::write_attribute(file, "step", {&manifest.step, 1});
  h5::write_attribute(file, "identity", manifest.identity);
  write_tables(file, manifest, index);
  write_scalars(file, index.scalars);
  h5::create_group(file, "/view");
  auto first = index.extents.begin();
  for (std::size_t tensor = 0; tensor < index.tensors.size(); ++tensor) {
    const auto end = std::find_if(first, index.extents.end(),
                                  [&](const StoredExtent& e) { return e.tensor != tensor; });
    write_view(file, manifest, index.tensors[tensor], {first, end});
    first = end;
  }
}

}  // namespace

std::string index_bytes(const Manifest& manifest, const Index& index) {
  const SparseImage image =
      h5::made_in_memory([&](hid_t file) { write_index(file, manifest, index); });
  std::string bytes(image.size_bytes(), '\0');
  image.read(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace fourfold::io
