// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The file in which llm.c (github.com/karpathy/llm.c) keeps a GPT-2: a header of 256 i32, then 16
/// arrays of all layers each, all of them f32 (version 3) or bf16 (version 5). Rows of the
/// vocabulary are padded. Weights of linear layers are [out, in].
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/io/stored_array.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::io {

/// What the header says. Its feed-forward width is 4 * hidden, always.
struct LlmcSizes {
  std::int64_t context = 0;
  std::int64_t vocab = 0;
  std::int64_t padded_vocab = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t hidden = 0;
  friend bool operator==(const LlmcSizes&, const LlmcSizes&) = default;
};

/// The arrays in the order of the file, by llm.c's names, with the layers stacked along the slowest
/// dim: "qkvw" is [layers * 3 * hidden, hidden], "ln1w" [layers * hidden].
std::vector<std::pair<std::string, Shape>> llmc_arrays(const LlmcSizes& sizes);

/// The 1024 bytes that stand before them. @pre dtype is f32 or bf16; sizes fit into i32
std::string llmc_header(const LlmcSizes& sizes, DType dtype);

class LlmcCheckpoint {
 public:
  /// Reads the header and checks it against the size of the file.
  /// @throws UserError: config when there is no such file, or it is of another kind or version;
  ///   data_corrupt when header and size do not fit together
  explicit LlmcCheckpoint(const std::filesystem::path& path);

  const LlmcSizes& sizes() const noexcept { return sizes_; }
  /// As llmc_arrays().
  const std::vector<StoredArray>& arrays() const noexcept { return arrays_; }

 private:
  LlmcSizes sizes_;
  std::vector<StoredArray> arrays_;
};

}  // namespace fourfold::io
