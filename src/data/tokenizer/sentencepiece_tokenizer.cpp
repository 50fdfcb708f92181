// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/folder_claims.hpp"
#include "tokenizer/tokenizer_kinds.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>
#include <sentencepiece_processor.h>

#include <algorithm>
#include <utility>

namespace fourfold::data::detail {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(TokenizerFiles from) : Tokenizer(std::move(from)) {
    const std::string& bytes = files().main.bytes;
    const auto status = processor_.LoadFromSerializedProto(bytes);
    if (!status.ok() || bytes.empty()) {
      throw UserError(
          ExitCode::data_corrupt,
          format_message("{}: is not a SentencePiece model ({}); fetch or train it again", model(),
                         status.ToString()));
    }
    const auto token_of = [&](const std::string& text) -> std::optional<std::int64_t> {
      const int id = processor_.PieceToId(text);
      return processor_.IdToPiece(id) == text ? std::optional<std::int64_t>(id) : std::nullopt;
    };
    refuse_other_claims_beside(files(), token_of, end_of_text(), adds_prefix_space());
  }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    std::vector<int> pieces;
    const auto status = processor_.Encode(text, &pieces);
    if (!status.ok()) {
      throw SystemError(ExitCode::data_corrupt,
                        format_message("{}: encoding failed ({})", model(), status.ToString()));
    }
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  }

  /// The library decodes a text as a whole; what it prints for a token depends on where the text
  /// begins and on bytes beside it. So the new tokens are decoded after one that has printed
  /// something, and what that one prints is taken off.
  StreamDecoder stream_decoder() const override {
    return StreamDecoder([this, window = std::vector<int>(), printed = std::string()](
                             std::optional<std::int32_t> token, std::string& bytes) mutable {
      if (token) {
        require_token(*token, *this);
        window.push_back(*token);
      }
      const bool ends_with_byte = !window.empty() && processor_.IsByte(window.back());
      if (token && ends_with_byte) {
        return;  // a row of them is decoded when it is complete: as characters, or each as U+FFFD
      }
      const std::string text = text_of(window);
      bytes += text.substr(std::min(printed.size(), text.size()));
      printed = window.empty() || ends_with_byte ? "" : text_of({window.back()});
      if (printed.empty()) {
        printed = text;
      } else {
        window = {window.back()};
      }
    });
  }

  std::int64_t lost_places(std::span<const std::int32_t> ids) const override {
    return std::ranges::count(ids, processor_.unk_id());
  }

  std::int32_t vocab_size() const noexcept override { return processor_.GetPieceSize(); }
  std::optional<std::int32_t> end_of_text() const noexcept override {
    const int id = processor_.eos_id();
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  }
  std::string description() const override {
    return fmt::format("SentencePiece, {} tokens, {}", vocab_size(), model());
  }

 private:
  std::string model() const { return files().main.path.string(); }

  std::string text_of(const std::vector<int>& tokens) const {
    std::string text;
    const auto status = processor_.Decode(tokens, &text);
    if (!status.ok()) {
      throw SystemError(ExitCode::data_corrupt,
                        format_message("{}: decoding failed ({})", model(), status.ToString()));
    }
    return text;
  }

  /// Before the first word; a SentencePiece model writes a blank as U+2581.
  bool adds_prefix_space() const {
    std::vector<std::string> pieces;
    return processor_.Encode("a", &pieces).ok() && !pieces.empty() &&
           pieces.front().starts_with("\u2581");
  }

  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(TokenizerFiles files) {
  return std::make_unique<SentencePieceTokenizer>(std::move(files));
}

}  // namespace fourfold::data::detail
