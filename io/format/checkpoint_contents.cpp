// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/checkpoint.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <utility>

namespace fourfold::io {

namespace {

template <class Map>
const typename Map::mapped_type& entry(const Map& map, std::string_view name) {
  const auto found = map.find(name);
  if (found == map.end()) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("the checkpoint has no scalar \"{}\" (another program or an "
                                   "older version wrote it); start from another checkpoint",
                                   name));
  }
  return found->second;
}

}  // namespace

std::string step_folder_name(std::int64_t step) {
  return fmt::format("step-{:09}", step);
}

std::string payload_file_name(int file, int files) {
  return fmt::format("shard-{:05}-of-{:05}.h5", file, files);
}

bool is_left_by_file_system(std::string_view name) noexcept {
  for (const std::string_view prefix : {".nfs", ".fuse_hidden", ".smbdelete"}) {
    if (name.starts_with(prefix)) {
      return name.size() > prefix.size() &&
             name.find_first_not_of("0123456789abcdefABCDEF", prefix.size()) ==
                 std::string_view::npos;
    }
  }
  constexpr std::string_view attributes = "._";  // of the file whose name follows
  if (name.starts_with(attributes)) {
    name.remove_prefix(attributes.size());
    return name == manifest_name || name == index_name || payload_number(name) ||
           name == ".DS_Store";
  }
  return name == ".DS_Store" || name == "Thumbs.db" || name == "desktop.ini";
}

std::optional<PayloadNumber> payload_number(std::string_view name) noexcept {
  constexpr std::string_view prefix = "shard-";
  PayloadNumber number;
  if (!name.starts_with(prefix)) {
    return std::nullopt;
  }
  const char* end = name.data() + name.size();
  const auto first = std::from_chars(name.data() + prefix.size(), end, number.file);
  if (first.ec != std::errc() || !std::string_view(first.ptr, end).starts_with("-of-")) {
    return std::nullopt;
  }
  const auto second = std::from_chars(first.ptr + 4, end, number.files);
  const bool is_one = second.ec == std::errc() && number.file >= 0 && number.file < number.files &&
                      name == payload_file_name(number.file, number.files);
  return is_one ? std::optional(number) : std::nullopt;
}

std::optional<std::uint64_t> stored_bytes(const Shape& shape, DType dtype) noexcept {
  constexpr std::int64_t most = std::int64_t{1} << 60;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    return 0;
  }
  std::int64_t bytes = size_in_bytes(dtype);
  for (const std::int64_t extent : shape) {
    if (extent < 0 || bytes > most / extent) {
      return std::nullopt;
    }
    bytes *= extent;
  }
  return bytes;
}

std::string extent_path(const TensorId& id, std::int64_t number) {
  return fmt::format("/t/{}/b{}", id.str(), number);
}

std::int64_t CheckpointScalars::integer(std::string_view name) const {
  return entry(integers, name);
}
double CheckpointScalars::real(std::string_view name) const {
  return entry(reals, name);
}
const std::string& CheckpointScalars::text(std::string_view name) const {
  return entry(texts, name);
}

bool operator==(const CheckpointScalars& a, const CheckpointScalars& b) noexcept {
  const auto same_bits = [](const auto& x, const auto& y) {
    return x.first == y.first &&
           std::bit_cast<std::uint64_t>(x.second) == std::bit_cast<std::uint64_t>(y.second);
  };
  return a.integers == b.integers && a.texts == b.texts &&
         std::equal(a.reals.begin(), a.reals.end(), b.reals.begin(), b.reals.end(), same_bits);
}

Checkpoint::Checkpoint(std::shared_ptr<const CheckpointContents> contents)
    : contents_(std::move(contents)) {}

std::int64_t Checkpoint::step() const noexcept {
  return contents_->manifest.step;
}
const std::filesystem::path& Checkpoint::path() const noexcept {
  return contents_->path;
}
const std::string& Checkpoint::identity() const noexcept {
  return contents_->manifest.identity;
}
const comm::MeshShape& Checkpoint::mesh() const noexcept {
  return contents_->manifest.mesh;
}
const CheckpointScalars& Checkpoint::scalars() const noexcept {
  return contents_->index.scalars;
}
std::span<const StoredTensor> Checkpoint::tensors() const noexcept {
  return contents_->index.tensors;
}

const StoredTensor* Checkpoint::find(const TensorId& id) const noexcept {
  const auto& tensors = contents_->index.tensors;
  const auto found =
      std::lower_bound(tensors.begin(), tensors.end(), id,
                       [](const StoredTensor& t, const TensorId& wanted) { return t.id < wanted; });
  return found != tensors.end() && found->id == id ? &*found : nullptr;
}

std::vector<StoredBox> boxes_of(const Checkpoint& checkpoint, const StoredTensor& tensor) {
  const CheckpointContents& contents = checkpoint.contents();
  FOURFOLD_EXPECT(checkpoint.find(tensor.id) == &tensor);
  const std::size_t row = &tensor - contents.index.tensors.data();
  std::vector<StoredBox> boxes;
  for (std::size_t i = contents.first_extent[row]; i < contents.first_extent[row + 1]; ++i) {
    const StoredExtent& extent = contents.index.extents[i];
    boxes.push_back({extent.box, contents.manifest.files[extent.file].name,
                     extent_path(tensor.id, extent.number), extent.byte_offset, extent.bytes});
  }
  return boxes;
}

std::span<const StoredFile> files_of(const Checkpoint& checkpoint) {
  return checkpoint.contents().manifest.files;
}

std::int64_t payload_bytes(const StoredTensor& tensor) {
  return tensor.shape.elements() * size_in_bytes(tensor.dtype);
}

std::int64_t payload_bytes(const Checkpoint& checkpoint) {
  std::int64_t bytes = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    bytes += payload_bytes(tensor);
  }
  return bytes;
}

}  // namespace fourfold::io
