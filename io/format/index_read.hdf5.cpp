// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"
#include "format/payload_file.hpp"

#include <fourfold/base/message.hpp>

#include <array>
#include <utility>

namespace fourfold::io {
namespace {

using Dims = std::array<std::int64_t, Shape::max_rank>;

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
    const auto state = TensorState::from_name(states[row]);
    const auto dtype = dtype_from_name(dtypes[row]);
    const bool rank_fits = ranks[row] >= 0 && std::cmp_less_equal(ranks[row], Shape::max_rank);
    if (!state || !dtype || !rank_fits) {
      reader.fail(format_message("row {} of /tensors ({}) is not of a tensor", row, names[row]));
      return;
    }
    const std::size_t rank = ranks[row];
    index.tensors.push_back({{names[row], *state},
                             *dtype,
                             shape_of(reader, shapes[row], rank),
                             {digests[row][0], digests[row][1]}});
  }
}

void read_extents(TableReader& reader, std::int64_t files, Index& index) {
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
        file_of[row] >= files) {
      reader.fail(
          format_message("row {} of /extents names a tensor or file that is not there", row));
      return;
    }
    const std::size_t tensor = tensors[row];
    const std::size_t file = file_of[row];
    const std::size_t rank = index.tensors[tensor].shape.rank();
    index.extents.push_back(
        {tensor,
         file,
         numbers[row],
         {shape_of(reader, offsets[row], rank), shape_of(reader, extents[row], rank)},
         byte_offsets[row],
         bytes[row],
         first_chunks[row],
         {digests[row][0], digests[row][1]}});
  }
}

}  // namespace

Defect parse_index(const std::string& bytes, const Manifest& manifest, Index& index) {
  const auto held = h5::lock();
  const h5::Id access(H5Pcreate(H5P_FILE_ACCESS));
  std::string image = bytes;  // HDF5 asks for memory that it might write to
  const bool is_ready = access && H5Pset_fapl_core(access.get(), 1 << 20, 0) >= 0 &&
                        H5Pset_file_image(access.get(), image.data(), image.size()) >= 0;
  // HDF5 refuses an image under the name of a file that is there: this can be none.
  constexpr const char* no_file = "/dev/null/index";
  const h5::Id file(is_ready ? H5Fopen(no_file, H5F_ACC_RDONLY, access.get()) : -1);
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
  index.scalars = read_scalars(reader);
  return reader.defect() ? reader.defect() : index_defect(manifest, index);
}

}  // namespace fourfold::io
