// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5.hpp"
#include "index_file.hpp"

#include <fmt/format.h>

#include <array>

namespace fourfold::io {
namespace {

using Dims = std::array<std::int64_t, Shape::max_rank>;

/// Reads datasets of exactly expected sizes and remembers the first that is not so.
class TableReader {
 public:
  explicit TableReader(hid_t file) : file_(file) {}

  const Defect& defect() const { return defect_; }
  void fail(const std::string& what) {
    if (!defect_) {
      defect_ = what;
    }
  }

  /// Rows of a one-dimensional dataset; 0 when there is none.
  std::size_t rows(const std::string& path) {
    const h5::Id dataset = open(path);
    const std::vector<hsize_t> dims = dims_of(dataset.get());
    if (dims.size() != 1 || dims[0] > most_rows) {
      fail(fmt::format("{} is not a column", path));
      return 0;
    }
    return dims[0];
  }

  /// A column of `count` cells, each a number or a std::array of numbers.
  template <class Cell>
  std::vector<Cell> column(const std::string& path, std::size_t count) {
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
      fail(fmt::format("{} is not a column of {} rows", path, count));
      return std::vector<Cell>(count);
    }
    return cells;
  }

  std::vector<std::string> text_column(const std::string& path, std::size_t count) {
    std::vector<std::string> texts(count);
    const h5::Id dataset = open(path);
    const h5::Id type(dataset ? H5Dget_type(dataset.get()) : -1);
    const bool fixed = type && H5Tget_class(type.get()) == H5T_STRING &&
                       H5Tis_variable_str(type.get()) == 0 &&
                       H5Tget_size(type.get()) <= most_text_bytes;
    const std::size_t width = fixed ? H5Tget_size(type.get()) : 0;
    std::string cells(width * count, '\0');
    if (!fixed || dims_of(dataset.get()) != std::vector<hsize_t>{count} ||
        H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, cells.data()) < 0) {
      fail(fmt::format("{} is not a column of {} texts", path, count));
      return texts;
    }
    for (std::size_t row = 0; row < count; ++row) {
      texts[row] = cells.substr(row * width, width);
      texts[row].resize(std::min(texts[row].size(), texts[row].find('\0')));
    }
    return texts;
  }

  /// Names of the links in a group.
  std::vector<std::string> names(const std::string& group_path) {
    std::vector<std::string> result;
    const h5::Id group(H5Gopen2(file_, group_path.c_str(), H5P_DEFAULT));
    H5G_info_t info = {};
    if (!group || H5Gget_info(group.get(), &info) < 0) {
      fail(fmt::format("{} is missing", group_path));
    }
    for (hsize_t i = 0; i < info.nlinks && !defect_; ++i) {
      std::string name(most_text_bytes, '\0');
      const ssize_t length = H5Lget_name_by_idx(group.get(), ".", H5_INDEX_NAME, H5_ITER_INC, i,
                                                name.data(), name.size(), H5P_DEFAULT);
      if (length <= 0 || static_cast<std::size_t>(length) >= name.size()) {
        fail(fmt::format("{} has a name that cannot be read", group_path));
        break;
      }
      name.resize(static_cast<std::size_t>(length));
      result.push_back(std::move(name));
    }
    return result;
  }

  template <class T>
  T scalar(const std::string& path) {
    T value{};
    const h5::Id dataset = open(path);
    const h5::Id type = h5::type_of(dtype_of<T>);
    if (!dataset || !dims_of(dataset.get()).empty() || !is_stored_as(dataset.get(), type.get()) ||
        H5Dread(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0) {
      fail(fmt::format("{} is not a number", path));
    }
    return value;
  }

 private:
  static constexpr std::size_t most_rows = std::size_t{1} << 28;
  static constexpr std::size_t most_text_bytes = 4096;

  h5::Id open(const std::string& path) {
    h5::Id dataset(H5Dopen2(file_, path.c_str(), H5P_DEFAULT));
    if (!dataset) {
      fail(fmt::format("{} is missing", path));
    }
    return dataset;
  }

  /// Empty for scalars and for what is no dataset.
  static std::vector<hsize_t> dims_of(hid_t dataset) {
    const h5::Id space(H5Dget_space(dataset));
    const int rank = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
    std::vector<hsize_t> dims(rank > 0 ? static_cast<std::size_t>(rank) : 0);
    if (rank > 0) {
      H5Sget_simple_extent_dims(space.get(), dims.data(), nullptr);
    }
    return dims;
  }

  static bool is_stored_as(hid_t dataset, hid_t type) {
    const h5::Id stored(H5Dget_type(dataset));
    return stored && H5Tequal(stored.get(), type) > 0;
  }

  hid_t file_;
  Defect defect_;
};

/// The first `rank` entries, when the others are zero.
Shape shape_of(TableReader& reader, const Dims& dims, std::size_t rank) {
  for (std::size_t dim = 0; dim < dims.size(); ++dim) {
    if (dims[dim] < 0 || (dim >= rank && dims[dim] != 0)) {
      reader.fail("has a shape, offset or extent that is none");
    }
  }
  return Shape({dims.data(), rank});
}

void read_tensors(TableReader& reader, Index& index) {
  const std::size_t count = reader.rows("/tensors/name");
  const auto names = reader.text_column("/tensors/name", count);
  const auto states = reader.text_column("/tensors/state", count);
  const auto dtypes = reader.text_column("/tensors/dtype", count);
  const auto ranks = reader.column<std::int64_t>("/tensors/rank", count);
  const auto shapes = reader.column<Dims>("/tensors/shape", count);
  const auto digests = reader.column<std::array<std::uint64_t, 2>>("/tensors/digest", count);
  for (std::size_t row = 0; row < count && !reader.defect(); ++row) {
    const auto state = tensor_state_from_name(states[row]);
    const auto dtype = dtype_from_name(dtypes[row]);
    const bool rank_fits = ranks[row] >= 0 && ranks[row] <= std::int64_t{Shape::max_rank};
    if (!state || !dtype || !rank_fits) {
      reader.fail(fmt::format("row {} of /tensors ({}) is not of a tensor", row, names[row]));
      return;
    }
    const auto rank = static_cast<std::size_t>(ranks[row]);
    index.tensors.push_back({{names[row], *state},
                             *dtype,
                             shape_of(reader, shapes[row], rank),
                             {digests[row][0], digests[row][1]}});
  }
}

void read_extents(TableReader& reader, std::size_t files, Index& index) {
  const std::size_t count = reader.rows("/extents/tensor");
  const auto tensors = reader.column<std::int64_t>("/extents/tensor", count);
  const auto numbers = reader.column<std::int64_t>("/extents/number", count);
  const auto file_of = reader.column<std::int64_t>("/extents/file", count);
  const auto offsets = reader.column<Dims>("/extents/offset", count);
  const auto extents = reader.column<Dims>("/extents/extent", count);
  const auto byte_offsets = reader.column<std::uint64_t>("/extents/byte_offset", count);
  const auto bytes = reader.column<std::uint64_t>("/extents/bytes", count);
  const auto first_chunks = reader.column<std::uint64_t>("/extents/first_chunk", count);
  const auto digests = reader.column<std::array<std::uint64_t, 2>>("/extents/digest", count);
  for (std::size_t row = 0; row < count && !reader.defect(); ++row) {
    if (tensors[row] < 0 || tensors[row] >= std::ssize(index.tensors) || file_of[row] < 0 ||
        file_of[row] >= static_cast<std::int64_t>(files)) {
      reader.fail(fmt::format("row {} of /extents names a tensor or file that is not there", row));
      return;
    }
    const auto tensor = static_cast<std::size_t>(tensors[row]);
    const std::size_t rank = index.tensors[tensor].shape.rank();
    index.extents.push_back(
        {tensor,
         static_cast<std::size_t>(file_of[row]),
         numbers[row],
         {shape_of(reader, offsets[row], rank), shape_of(reader, extents[row], rank)},
         byte_offsets[row],
         bytes[row],
         first_chunks[row],
         {digests[row][0], digests[row][1]}});
  }
}

void read_scalars(TableReader& reader, CheckpointScalars& scalars) {
  for (const std::string& name : reader.names("/scalars/integers")) {
    scalars.integers[name] = reader.scalar<std::int64_t>("/scalars/integers/" + name);
  }
  for (const std::string& name : reader.names("/scalars/reals")) {
    scalars.reals[name] = reader.scalar<double>("/scalars/reals/" + name);
  }
  for (const std::string& name : reader.names("/scalars/texts")) {
    const std::string path = "/scalars/texts/" + name;
    const auto bytes = reader.column<std::uint8_t>(path, reader.rows(path));
    scalars.texts[name] = std::string(bytes.begin(), bytes.end());
  }
}

}  // namespace

Defect parse_index(const std::string& bytes, const Manifest& manifest, Index& index) {
  const auto held = h5::lock();
  const h5::Id access(H5Pcreate(H5P_FILE_ACCESS));
  std::string image = bytes;  // HDF5 asks for memory that it might write to
  const bool is_ready = access && H5Pset_fapl_core(access.get(), 1 << 20, 0) >= 0 &&
                        H5Pset_file_image(access.get(), image.data(), image.size()) >= 0;
  const h5::Id file(is_ready ? H5Fopen("index.h5", H5F_ACC_RDONLY, access.get()) : -1);
  if (!file) {
    return "is not an HDF5 file that can be opened";
  }
  index = {};
  TableReader reader(file.get());
  const std::size_t files = manifest.files.size();
  const auto names = reader.text_column("/files/name", files);
  const auto table_offsets = reader.column<std::uint64_t>("/files/crc_table_offset", files);
  const auto chunks = reader.column<std::uint64_t>("/files/chunks", files);
  for (std::size_t i = 0; i < files; ++i) {
    if (names[i] != manifest.files[i].name) {
      reader.fail("lists other payload files than the manifest (it is the index of another step)");
    }
    index.tables.push_back({table_offsets[i], chunks[i]});
  }
  read_tensors(reader, index);
  read_extents(reader, files, index);
  read_scalars(reader, index.scalars);
  return reader.defect() ? reader.defect() : index_defect(manifest, index);
}

}  // namespace fourfold::io
