// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How a checkpoint lies in its files, for people and tools.
#pragma once

#include <fourfold/io/checkpoint.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::io {

/// A part of a tensor, dense in one file: a dataset of it.
struct StoredBox {
  Box box;
  std::string file;
  std::string dataset;  ///< "/t/<name>/<state>/b0"
  std::int64_t byte_offset = 0;
  std::int64_t bytes = 0;
};
/// Of one tensor, in the order of their numbers. @pre `tensor` is one of checkpoint.tensors()
std::vector<StoredBox> boxes_of(const Checkpoint& checkpoint, const StoredTensor& tensor);

struct StoredFile {
  std::string name;
  std::int64_t bytes = 0;
};
/// The payload files, by name.
std::vector<StoredFile> files_of(const Checkpoint& checkpoint);

std::int64_t payload_bytes(const StoredTensor& tensor);
/// Of all tensors.
std::int64_t payload_bytes(const Checkpoint& checkpoint);

}  // namespace fourfold::io
