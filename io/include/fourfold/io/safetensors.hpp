// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// safetensors, the format in which Hugging Face keeps weights
/// (github.com/huggingface/safetensors): 8 bytes with the length of a header, little-endian; the
/// header, a JSON object of name, type, shape and byte range of every array; the arrays.
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/base/shape.hpp>
#include <fourfold/io/stored_array.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// One file, whose header has been read and checked: it is JSON of the expected form, entries of
/// one name agree, shape, type and byte range of each array agree, and the ranges fill the file
/// from the header to the end without overlap or hole.
class SafetensorsFile {
 public:
  /// Links are followed. @throws UserError: config when there is no such file, or it is no regular
  ///   file;
  ///   data_corrupt with the reason when it does not hold together
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// In the order of the file.
  std::span<const StoredArray> arrays() const noexcept { return arrays_; }
  /// The texts of its "__metadata__".
  const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }

 private:
  std::vector<StoredArray> arrays_;
  std::map<std::string, std::string> metadata_;
};

/// All arrays of a model in one folder: model.safetensors, or else the files that
/// model.safetensors.index.json names. Those must be in the same folder, as files or as links that
/// the user has made there; index and files must agree on which array is where.
class SafetensorsFolder {
 public:
  /// @throws UserError as SafetensorsFile, and for names that lead out of the folder
  explicit SafetensorsFolder(const std::filesystem::path& folder);

  /// By name.
  std::span<const StoredArray> arrays() const noexcept { return arrays_; }
  /// Null when there is none.
  const StoredArray* find(std::string_view name) const noexcept;

 private:
  std::vector<StoredArray> arrays_;
};

/// What stands before the arrays in a file that has them in this order: length and header, filled
/// up so that the arrays begin at a multiple of 8 bytes.
/// @pre names are unique and none is "__metadata__"
std::string safetensors_header(std::span<const ArrayToWrite> arrays,
                               const std::map<std::string, std::string>& metadata);

/// The text of model.safetensors.index.json. @param file_of  file name by array name
std::string safetensors_index(const std::map<std::string, std::string>& file_of,
                              std::int64_t total_bytes, std::int64_t total_parameters);

/// "model.safetensors"; of several "model-00002-of-00005.safetensors", `file` from 0.
std::string safetensors_file_name(std::size_t file, std::size_t files);
inline constexpr const char* safetensors_index_name = "model.safetensors.index.json";

}  // namespace fourfold::io
