// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a committed checkpoint is, once it has been found and looked at.
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/digest.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// The few numbers and texts that are state besides the tensors: "consumed_samples",
/// "loss_scale", "config.toml", ... Names obey the rule of TensorId. Texts may hold anything.
struct CheckpointScalars {
  std::map<std::string, std::int64_t, std::less<>> integers;
  std::map<std::string, double, std::less<>> reals;
  std::map<std::string, std::string, std::less<>> texts;

  /// @throws UserError (data_corrupt) naming the entry when a checkpoint lacks it
  std::int64_t integer(std::string_view name) const;
  double real(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  /// Compares bits: a NaN equals itself.
  friend bool operator==(const CheckpointScalars& a, const CheckpointScalars& b) noexcept;
};

/// A logical tensor as a checkpoint has it.
struct StoredTensor {
  TensorId id;
  DType dtype = DType::f32;
  Shape shape;
  Digest digest;
};

struct CheckpointContents;

/// One committed step whose manifest and index have been read and checked. Immutable; cheap to
/// copy; the same on all ranks.
class Checkpoint {
 public:
  explicit Checkpoint(std::shared_ptr<const CheckpointContents> contents);

  std::int64_t step() const noexcept;
  const std::filesystem::path& path() const noexcept;
  /// 32 hexadecimal digits that depend on the step, the integers, the reals and the tensors, so
  /// on all that a run computes on with, and not on mesh or texts: equal state, equal identity.
  const std::string& identity() const noexcept;
  const comm::MeshShape& mesh() const noexcept;
  const CheckpointScalars& scalars() const noexcept;
  /// Ordered by id.
  std::span<const StoredTensor> tensors() const noexcept;
  const StoredTensor* find(const TensorId& id) const noexcept;
  const CheckpointContents& contents() const noexcept { return *contents_; }

 private:
  std::shared_ptr<const CheckpointContents> contents_;
};

/// Told of bytes of a piece or a wanted box that a call is done with for now: memory that is a
/// window on a file can let go of them.
using DoneWith = std::function<void(const void* begin, std::size_t bytes)>;

// How a checkpoint lies in its files, for people and tools.

/// A part of a tensor, dense in one file: a dataset of it.
struct StoredBox {
  Box box;
  std::string file;
  std::string dataset;  ///< "/t/<name>/<state>/b0"
  std::uint64_t byte_offset = 0;
  std::uint64_t bytes = 0;
};
/// Of one tensor, in the order of their numbers. @pre `tensor` is one of checkpoint.tensors()
std::vector<StoredBox> boxes_of(const Checkpoint& checkpoint, const StoredTensor& tensor);

/// A payload file, as the manifest has it.
struct StoredFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;        ///< of the whole file
  std::uint32_t table_crc32c = 0;  ///< of the bytes of its /_crc32c dataset
};
/// By name; as long as the checkpoint lives.
std::span<const StoredFile> files_of(const Checkpoint& checkpoint);

std::int64_t payload_bytes(const StoredTensor& tensor);
/// Of all tensors.
std::int64_t payload_bytes(const Checkpoint& checkpoint);

}  // namespace fourfold::io
