// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <fmt/format.h>
#include <sentencepiece_processor.h>

namespace fourfold::data {
namespace {

class SentencePieceTokenizer final : public Tokenizer {
 public:
  explicit SentencePieceTokenizer(const std::filesystem::path& model) : model_(model) {
    const io::MappedFile file(model);
    const std::string_view bytes(reinterpret_cast<const char*>(file.bytes().data()),
                                 file.bytes().size());
    const auto status = processor_.LoadFromSerializedProto(bytes);
    if (!status.ok() || bytes.empty()) {
      throw UserError(ExitCode::data_corrupt,
                      fmt::format("{}: is not a SentencePiece model ({}); fetch or train it again",
                                  model.string(), status.ToString()));
    }
  }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    std::vector<int> pieces;
    const auto status = processor_.Encode(text, &pieces);
    if (!status.ok()) {
      throw SystemError(ExitCode::data_corrupt, fmt::format("{}: encoding failed ({})",
                                                            model_.string(), status.ToString()));
    }
    ids.insert(ids.end(), pieces.begin(), pieces.end());
  }

  std::string decode(std::span<const std::int32_t> ids) const override {
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= vocab_size()) {
        throw UserError(ExitCode::data_corrupt,
                        fmt::format("token {} is outside the vocabulary [0, {}) of {}; the "
                                    "tokens were made with another tokenizer",
                                    id, vocab_size(), model_.string()));
      }
    }
    std::string text;
    const auto status = processor_.Decode(std::vector<int>(ids.begin(), ids.end()), &text);
    if (!status.ok()) {
      throw SystemError(ExitCode::data_corrupt, fmt::format("{}: decoding failed ({})",
                                                            model_.string(), status.ToString()));
    }
    return text;
  }

  std::int32_t vocab_size() const noexcept override { return processor_.GetPieceSize(); }
  std::optional<std::int32_t> end_of_text() const noexcept override {
    const int id = processor_.eos_id();
    return id < 0 ? std::nullopt : std::optional<std::int32_t>(id);
  }
  std::string description() const override {
    return fmt::format("SentencePiece, {} tokens, {}", vocab_size(), model_.string());
  }

 private:
  std::filesystem::path model_;
  sentencepiece::SentencePieceProcessor processor_;
};

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(const std::filesystem::path& model) {
  return std::make_unique<SentencePieceTokenizer>(model);
}

}  // namespace fourfold::data
