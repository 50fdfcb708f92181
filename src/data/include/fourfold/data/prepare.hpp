// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/enum_name.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::data {

/// How documents lie in an input file.
enum class InputFormat : std::uint8_t {
  automatic,   ///< each file as its content tells
  text,        ///< all of it is one document, or several with a separator; whatever it looks like
  json_lines,  ///< each line is a JSON object, whose "text" is one document
};
constexpr auto names_of(InputFormat /*any*/) {
  using enum InputFormat;
  return std::to_array<Named<InputFormat>>(
      {{automatic, "auto"}, {text, "text"}, {json_lines, "jsonl"}});
}
using fourfold::name;

/// What `prepare` makes of which texts.
struct PrepareOptions {
  /// In the order they are to be read.
  std::vector<std::filesystem::path> inputs = {};
  /// Automatic: a file that is named .jsonl or begins with a JSON object on a line of its own holds
  /// JSON lines; another one is text, and refused where it is compressed, binary or JSON of another
  /// form.
  InputFormat format = InputFormat::automatic;
  /// Output is PREFIX.bin, .idx and .json; with a validation part PREFIX_train.* and PREFIX_val.*.
  std::filesystem::path output_prefix = {};
  /// Put the tokenizer's end-of-text token after every document.
  bool append_end_of_text = false;
  /// Not empty. Taken out of the text.
  std::optional<std::string> document_separator = std::nullopt;
  /// Part of every input file, at its end, that is held back: the documents that begin in the last
  /// fraction of its bytes. A file that is a single document is cut after the first line end in
  /// that fraction. In [0, 1).
  double validation_fraction = 0;
};

struct PrepareProgress {
  std::int64_t done_bytes = 0;
  std::int64_t total_bytes = 0;
  std::int64_t tokens = 0;
};

/// One pair of files that was written.
struct PreparedPart {
  std::filesystem::path bin;
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
};

/// Turns texts into token files (Megatron pairs, u16 for vocabularies below 65500, else i32). Empty
/// documents are left out. Outputs get their names at the end, when all inputs have been read and
/// everything is on the disk; before, an older set is as it was. While they get them, and where
/// that fails or the process is killed, an older part, a new one, or none can be read, never a
/// mixture of both, nor an older part beside a new one. Memory: inputs are mapped, the tokens of
/// one document are held at a time (4 bytes each).
/// @param progress  called after every document, from this thread
/// @return the written parts: one, or training and validation
/// @throws UserError: config for an output that is an input or that another program has made, for
///   missing inputs and ones of another kind than text, for end-of-text
///   from a tokenizer without one, or when a part would be empty; data_corrupt for an empty input
///   or a line of JSON without text, naming file and line; cannot_write
std::vector<PreparedPart> prepare(Tokenizer& tokenizer, const PrepareOptions& options,
                                  const std::function<void(const PrepareProgress&)>& progress);

/// Reads a written part again and checks the index and every token against the vocabulary.
/// @throws UserError (data_corrupt)
void check_part(const PreparedPart& part, std::int32_t vocab_size);

}  // namespace fourfold::data
