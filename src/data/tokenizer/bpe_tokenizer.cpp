// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/added_tokens.hpp"
#include "tokenizer/bpe_description.hpp"
#include "tokenizer/bpe_model.hpp"
#include "tokenizer/pre_tokenizer.hpp"
#include "tokenizer/token_decoder.hpp"
#include "tokenizer/tokenizer_kinds.hpp"
#include "unicode/unicode_text.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace fourfold::data::detail {
namespace {

std::optional<std::int32_t> find_end_of_text(const std::vector<AddedToken>& added) {
  for (const char* known : {"<|endoftext|>", "<|end_of_text|>", "<｜end▁of▁sentence｜>", "</s>",
                            "<eos>", "<|eot_id|>"}) {
    for (const AddedToken& token : added) {
      if (token.content == known) {
        return token.id;
      }
    }
  }
  return std::nullopt;
}

/// Says where the file and the library disagree about the numbers of added tokens, in one line.
void warn_of_other_numbers(const BpeDescription& description, const std::vector<AddedToken>& added,
                           std::vector<std::string>& warnings) {
  for (const AddedToken& listed : description.added) {
    const auto token = std::find_if(added.begin(), added.end(), [&](const AddedToken& one) {
      return one.content == listed.content;
    });
    if (token != added.end() && token->id != listed.id) {
      warnings.push_back(format_message(
          "{}: the added token '{}' is {}, not {} as the file says (the tokenizers library numbers "
          "them anew when it reads a file, and so does fourfold)",
          printable(description.file.string()), printable(listed.content), token->id, listed.id));
      return;
    }
  }
}

/// Says, in one line, where the library's choice between added tokens is left to chance: it changes
/// from one reading of the file to the next (0.23.3).
/// @param spelled  the added tokens with their normal forms, in the order of their numbers
void warn_of_equal_forms(const BpeDescription& description,
                         const std::vector<AddedTokens::Spelled>& spelled,
                         std::vector<std::string>& warnings) {
  std::unordered_map<std::string_view, const AddedToken*> known;
  for (const auto& [form, token] : spelled) {
    const auto [first, is_new] = known.emplace(form, &token);
    if (!is_new) {
      warnings.push_back(format_message(
          "{}: the added tokens '{}' ({}) and '{}' ({}) have the same normal form '{}' (which of "
          "them is meant the tokenizers library leaves to chance; fourfold takes the lower number)",
          printable(description.file.string()), printable(first->second->content),
          first->second->id, printable(token.content), token.id, printable(form)));
      return;
    }
  }
}

std::string describe(const BpeDescription& description, std::int32_t tokens,
                     std::int64_t unknown_bytes) {
  std::string text = fmt::format("{} BPE, {} tokens, {} merges",
                                 description.is_byte_level ? "byte-level" : "character-level",
                                 tokens, description.merges.size());
  if (unknown_bytes > 0) {
    text +=
        fmt::format(", no token for {} of the 256 bytes (a text {})", unknown_bytes,
                    description.unknown_token ? "gets the unknown token for them" : "loses them");
  }
  return fmt::format("{}, {}", text, description.file.string());
}

/// What each token prints before it is decoded, by number. A number may be that of no token.
using Spelled = std::unordered_map<std::int32_t, std::string>;

/// Text goes through six sieves: runs of bytes that are not UTF-8, added tokens that are looked for
/// in the text as it is, the normalizer, added tokens that are looked for in normal text, the steps
/// of pre-tokenisation, and what is left of it are words for the BPE.
class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(TokenizerFiles from, std::vector<std::string>& warnings)
      : Tokenizer(std::move(from)),
        description_(read_bpe(files())),
        normalizer_(description_.normalization, description_.file.string()),
        added_tokens_(numbered(description_)),
        added_(spelled_added(false)),
        added_normal_(spelled_added(true)),
        pre_tokenizer_(description_.splitting, description_.file.string()),
        model_(description_),
        spelled_(spelled()),
        vocab_size_(smallest_vocab_size()),
        end_of_text_(find_end_of_text(added_tokens_)),
        text_(describe(description_, vocab_size_, model_.unknown_bytes())) {
    warn_of_other_numbers(description_, added_tokens_, warnings);
    warn_of_equal_forms(description_, spelled_added(true), warnings);
    std::ignore = token_decoder(description_);  // refuses what it must
    description_.vocab = {};
    description_.merges = {};
  }

  void encode(std::string_view text, std::vector<std::int32_t>& ids) override {
    ids_ = &ids;
    model_.begin_text();
    for (std::size_t done = 0; done < text.size();) {
      const std::size_t valid = valid_utf8_prefix(text.substr(done));
      if (valid > 0) {
        encode_valid(text.substr(done, valid), done == 0);
      }
      done += valid;
      const std::size_t invalid = invalid_utf8_prefix(text.substr(done));
      if (invalid > 0) {
        encode_invalid(text.substr(done, invalid), done == 0);
      }
      done += invalid;
    }
  }

  StreamDecoder stream_decoder() const override {
    return StreamDecoder([this, take = token_decoder(description_)](
                             std::optional<std::int32_t> token, std::string& bytes) {
      if (!token) {
        take(std::nullopt, bytes);
        return;
      }
      require_token(*token, *this);
      if (const auto found = spelled_.find(*token); found != spelled_.end()) {
        take(found->second, bytes);
      }
    });
  }

  std::int64_t lost_places(std::span<const std::int32_t> ids) const override {
    return model_.lost_places(ids);
  }

  std::int32_t vocab_size() const noexcept override { return vocab_size_; }
  std::optional<std::int32_t> end_of_text() const noexcept override { return end_of_text_; }
  std::string description() const override { return text_; }

 private:
  /// The added tokens of one round, by what is looked for.
  std::vector<AddedTokens::Spelled> spelled_added(bool normalized) {
    std::vector<AddedTokens::Spelled> spelled;
    for (const AddedToken& token : added_tokens_) {
      if (token.normalized == normalized) {
        spelled.emplace_back(spelling_of(token), token);
      }
    }
    return spelled;
  }

  std::string spelling_of(const AddedToken& token) {
    if (!token.normalized) {
      return token.content;
    }
    std::string form(normalizer_.apply({token.content}).text);
    if (form.empty()) {  // the library finds it everywhere, within characters too, where it ends
      throw UserError(ExitCode::config,
                      format_message("{}: uses an added token '{}' of which the normalizer leaves "
                                     "nothing (not supported; docs/data.md lists what is); use "
                                     "another tokenizer",
                                     description_.file.string(), token.content));
    }
    return form;
  }

  Spelled spelled() {
    Spelled spelled;
    for (const auto& [text, id] : description_.vocab) {
      spelled[id] = text;
    }
    for (const AddedToken& token : added_tokens_) {
      spelled[token.id] = spelling_of(token);
    }
    return spelled;
  }

  std::int32_t smallest_vocab_size() const {
    std::int32_t size = 0;
    for (const auto& [id, text] : spelled_) {
      size = std::max(size, id + 1);
    }
    return size;
  }

  void encode_valid(std::string_view text, bool is_first) {
    added_.cut(
        text,
        [&](std::string_view piece) {
          const bool begins = is_first && piece.data() == text.data();
          encode_between({piece, begins ? size_of_first_character(piece) : 0});
        },
        [&](std::int32_t id) { ids_->push_back(id); });
  }

  void encode_between(Piece piece) {
    const Piece normal = normalizer_.apply(piece);
    added_normal_.cut(
        normal.text,
        [&](std::string_view rest) {
          const std::size_t begin = rest.data() - normal.text.data();
          pre_tokenizer_.split(normal.part(begin, rest.size()), word_);
        },
        [&](std::int32_t id) { ids_->push_back(id); });
  }

  void encode_invalid(std::string_view bytes, bool is_first) {
    if (model_.takes_any_bytes()) {
      model_.encode_bytes(bytes, *ids_);
    } else {
      encode_valid("\uFFFD", is_first);
    }
  }

  BpeDescription description_;  ///< without vocabulary and merges
  Normalizer normalizer_;
  std::vector<AddedToken> added_tokens_;
  AddedTokens added_;
  AddedTokens added_normal_;
  PreTokenizer pre_tokenizer_;
  BpeModel model_;
  Spelled spelled_;
  std::int32_t vocab_size_;  ///< largest number of a token, plus one
  std::optional<std::int32_t> end_of_text_;
  std::string text_;
  std::vector<std::int32_t>* ids_ = nullptr;  ///< where encode() appends
  const PreTokenizer::Word word_ = [this](std::string_view word) { model_.encode(word, *ids_); };
};

}  // namespace

std::unique_ptr<Tokenizer> make_bpe(TokenizerFiles files, std::vector<std::string>& warnings) {
  return std::make_unique<BpeTokenizer>(std::move(files), warnings);
}

}  // namespace fourfold::data::detail
