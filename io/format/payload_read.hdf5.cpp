// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include "format/payload_file.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace fourfold::io {
namespace {

/// As write_head() has written it.
comm::MeshShape read_mesh(TableReader& reader) {
  const std::vector<std::int64_t> degrees = reader.integers("/", "mesh");
  comm::MeshShape mesh;
  if (degrees.size() != comm::axis_count) {
    reader.fail(format_message("\"mesh\" is not {} numbers", comm::axis_count));
    return mesh;
  }
  for (std::size_t i = 0; i < comm::axis_count; ++i) {
    mesh[comm::all_axes[i]] = static_cast<int>(std::clamp<std::int64_t>(degrees[i], 1, 1 << 30));
  }
  return mesh;
}

PayloadDescription read_head(TableReader& reader) {
  if (reader.text("/", "format") != "fourfold checkpoint payload 1") {
    reader.fail("is not a payload of a fourfold checkpoint that this program knows");
  }
  return {.step = reader.integer("/", "step", 0),
          .mesh = read_mesh(reader),
          .files = reader.integer("/", "files", 1),
          .save = reader.text("/", "save"),
          .extents = {},
          .scalars = {},
          .empty_tensors = {}};
}

/// A shape out of an attribute; empty of dims, and a defect, when it is none.
Shape read_shape(TableReader& reader, const std::string& path, const char* attribute) {
  const std::vector<std::int64_t> dims = reader.integers(path, attribute);
  if (dims.size() > Shape::max_rank ||
      std::ranges::any_of(dims, [](std::int64_t extent) { return extent < 0; })) {
    reader.fail(format_message("\"{}\" of {} is no shape", attribute, path));
    return {};
  }
  return Shape({dims.data(), dims.size()});
}

/// The tensor that the attributes of a dataset, or of an empty tensor's group, tell of.
StoredTensor read_tensor(TableReader& reader, const std::string& path, const TensorId& id) {
  const auto dtype = dtype_from_name(reader.text(path, "dtype"));
  const Shape shape = read_shape(reader, path, "global_shape");
  if (!dtype || reader.text(path, "state") != id.state.name() ||
      !stored_bytes(shape, dtype.value_or(DType::f32))) {
    reader.fail(format_message("{} is not of a tensor", path));
  }
  return {id, dtype.value_or(DType::f32), shape, {}};
}

/// The k of "b<k>".
std::optional<std::int64_t> number_of(std::string_view name) {
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  const bool is_number = failure == std::errc() && number >= 0;
  return is_number && name == fmt::format("b{}", number) ? std::optional(number) : std::nullopt;
}

PayloadExtent read_extent(TableReader& reader, const TensorId& id, std::string_view name) {
  const auto number = number_of(name);
  const std::string path = extent_path(id, number.value_or(0));
  if (!number) {
    reader.fail(format_message("/t/{} holds {}, which is no extent", id.str(), name));
    return {};
  }
  PayloadExtent extent{.tensor = read_tensor(reader, path, id), .number = *number, .box = {}};
  const h5::Id dataset = reader.open(path);
  const std::vector<hsize_t> dims = TableReader::dims_of(dataset.get());
  const Shape offset = read_shape(reader, path, "offset");
  const auto fits = [](hsize_t dim) { return dim <= hsize_t{INT64_MAX}; };
  if (dims.size() != extent.tensor.shape.rank() || offset.rank() != dims.size() ||
      !std::ranges::all_of(dims, fits)) {
    reader.fail(format_message("{} has other dims than its tensor", path));
    return extent;
  }
  const std::vector<std::int64_t> extents(dims.begin(), dims.end());
  extent.box = {offset, Shape({extents.data(), extents.size()})};
  extent.first_chunk = reader.integer(path, "first_chunk", 0);
  if (stored_bytes(extent.box.extent, extent.tensor.dtype).value_or(0) == 0) {
    reader.fail(format_message("{} has the impossible extent {}", path, extent.box.extent.str()));
  }
  return extent;
}

void read_tensors(TableReader& reader, PayloadDescription& description) {
  for (const std::string& tensor : reader.names("/t")) {
    for (const std::string& state_name : reader.names("/t/" + tensor)) {
      const auto state = TensorState::from_name(state_name);
      if (!state || !is_tensor_name(tensor)) {
        reader.fail(format_message("/t/{}/{} is no tensor", tensor, state_name));
        return;
      }
      const TensorId id{tensor, *state};
      const std::vector<std::string> extents = reader.names("/t/" + id.str());
      if (extents.empty() && !reader.defect()) {
        description.empty_tensors.push_back(read_tensor(reader, "/t/" + id.str(), id));
      }
      for (const std::string& extent : extents) {
        description.extents.push_back(read_extent(reader, id, extent));
        if (reader.defect()) {
          return;
        }
      }
    }
  }
  std::ranges::sort(description.extents, {}, &PayloadExtent::first_chunk);
  std::ranges::sort(description.empty_tensors, {}, &StoredTensor::id);
}

}  // namespace

Defect describe_payload(const InputFile& file, PayloadDescription& description) {
  const auto held = h5::lock();
  const h5::Id opened = h5::opened(file);
  if (!opened) {
    return "is not an HDF5 file that can be opened";
  }
  TableReader reader(opened.get());
  const std::vector<std::string> parts = reader.names("/");  // no link leads out of the file
  description = read_head(reader);
  if (!reader.defect()) {
    read_tensors(reader, description);
  }
  if (!reader.defect() && std::ranges::find(parts, "scalars") != parts.end()) {
    reader.names("/scalars");
    description.scalars = read_scalars(reader);
  }
  return reader.defect();
}

}  // namespace fourfold::io
