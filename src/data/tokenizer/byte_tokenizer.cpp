// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/tokenizer.hpp>

namespace fourfold::data {
namespace {

constexpr std::int32_t end_of_text_id = 256;

void decode_byte(std::optional<std::int32_t> token, std::string& bytes) {
  if (token && (*token < 0 || *token > end_of_text_id)) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("token {} is outside the byte vocabulary [0, {}); the "
                                   "tokens were made with another tokenizer",
                                   *token, end_of_text_id + 1));
  }
  if (token && token != end_of_text_id) {
    bytes.push_back(static_cast<char>(*token));
  }
}

class ByteTokenizer final : public Tokenizer {
 public:
  ByteTokenizer() : Tokenizer({}) {}

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    ids.reserve(ids.size() + text.size());
    for (const unsigned char byte : text) {
      ids.push_back(byte);
    }
  }

  StreamDecoder stream_decoder() const override { return StreamDecoder(decode_byte); }

  std::int32_t vocab_size() const noexcept override { return end_of_text_id + 1; }
  std::optional<std::int32_t> end_of_text() const noexcept override { return end_of_text_id; }
  std::string description() const override { return "byte-level, 256 bytes and end-of-text"; }
};

}  // namespace

std::unique_ptr<Tokenizer> make_byte_tokenizer() {
  return std::make_unique<ByteTokenizer>();
}

}  // namespace fourfold::data
