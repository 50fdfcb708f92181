// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::data {
namespace {

using nlohmann::ordered_json;

/// A BPE without merges over the 256 bytes, and the end of text.
std::string made_byte_tokenizer_json() {
  ordered_json vocab = ordered_json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[spelling_of_byte(static_cast<unsigned char>(byte))] = byte;
  }
  const ordered_json byte_level{{"type", "ByteLevel"},
                                {"add_prefix_space", false},
                                {"trim_offsets", true},
                                {"use_regex", false}};
  const ordered_json added{
      {"id", 256},       {"content", "<|endoftext|>"}, {"single_word", false}, {"lstrip", false},
      {"rstrip", false}, {"normalized", false},        {"special", true}};
  const ordered_json document{{"version", "1.0"},
                              {"truncation", nullptr},
                              {"padding", nullptr},
                              {"added_tokens", ordered_json::array({added})},
                              {"normalizer", nullptr},
                              {"pre_tokenizer", byte_level},
                              {"post_processor", nullptr},
                              {"decoder", byte_level},
                              {"model",
                               {{"type", "BPE"},
                                {"dropout", nullptr},
                                {"unk_token", nullptr},
                                {"continuing_subword_prefix", nullptr},
                                {"end_of_word_suffix", nullptr},
                                {"fuse_unk", false},
                                {"byte_fallback", false},
                                {"vocab", vocab},
                                {"merges", ordered_json::array()}}}};
  return json_text(document, 2) + "\n";
}

}  // namespace

const std::string& byte_tokenizer_json() {
  static const std::string text = made_byte_tokenizer_json();
  return text;
}

}  // namespace fourfold::data
