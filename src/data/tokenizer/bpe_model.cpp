// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe_model.hpp"

#include "unicode/unicode_text.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace fourfold::data::detail {
namespace {

/// Spelling of the token that stands for a byte: <0x0A>.
std::string byte_token(int byte) {
  return fmt::format("<0x{:02X}>", byte);
}

using Ids = std::unordered_map<std::string_view, std::int32_t>;

Ids ids_of(const BpeDescription& description) {
  Ids ids;
  ids.reserve(description.vocab.size());
  for (const auto& [spelled, id] : description.vocab) {
    ids.emplace(spelled, id);
  }
  return ids;
}

std::int32_t id_or_none(const Ids& ids, std::string_view spelled) {
  const auto found = ids.find(spelled);
  return found == ids.end() ? -1 : found->second;
}

}  // namespace

BpeModel::BpeModel(const BpeDescription& description)
    : is_byte_level_(description.is_byte_level),
      byte_fallback_(description.byte_fallback),
      fuse_unknown_(description.fuse_unknown),
      file_(description.file.string()),
      unknown_token_(description.unknown_token),
      merger_(description.merges.size()) {
  read_vocabulary(description);
  read_merges(description);
  if (!is_byte_level_) {
    find_barriers(description);
  }
}

void BpeModel::read_vocabulary(const BpeDescription& description) {
  byte_ids_.fill(-1);
  for (const auto& [spelled, id] : description.vocab) {
    const std::optional<std::string> word =
        is_byte_level_ ? bytes_of_spelling(spelled) : std::optional<std::string>(spelled);
    if (!word || word->empty()) {
      continue;  // no text is spelled like that
    }
    if (description.ignore_merges) {
      whole_words_.emplace(*word, id);
    }
    if (is_byte_level_) {
      if (word->size() == 1) {
        const unsigned char byte = word->front();
        byte_ids_[byte] = id;
      }
      continue;
    }
    std::string_view rest = *word;
    const char32_t character = take_character(rest);
    if (rest.empty()) {
      character_ids_.resize(std::max<std::size_t>(character_ids_.size(), character + 1), -1);
      character_ids_[character] = id;
    }
  }
}

void BpeModel::read_merges(const BpeDescription& description) {
  const Ids ids = ids_of(description);
  if (unknown_token_) {
    unknown_id_ = id_or_none(ids, *unknown_token_);
  }
  std::vector<std::int32_t> never_in_merges = {unknown_id_};
  for (int byte = 0; byte < 256; ++byte) {
    byte_token_ids_[byte] = id_or_none(ids, byte_token(byte));
    never_in_merges.push_back(byte_token_ids_[byte]);
  }
  has_all_byte_tokens_ = byte_fallback_ && !is_byte_level_ &&
                         std::count(byte_token_ids_.begin(), byte_token_ids_.end(), -1) == 0;
  leaves_bytes_out_ = unknown_bytes() > 0 && !unknown_token_;
  unknown_never_merges_ = has_all_byte_tokens_;
  std::sort(never_in_merges.begin(), never_in_merges.end());
  std::int32_t rank = 0;
  for (const auto& [left, right] : description.merges) {
    const auto id_of = [&](const std::string& token) {
      const std::int32_t id = id_or_none(ids, token);
      if (id < 0) {
        damaged(description.file,
                format_message(
                    "merge {} ('{}' and '{}') needs the token '{}', which the vocabulary lacks",
                    rank, left, right, token));
      }
      return id;
    };
    merger_.insert(id_of(left), id_of(right), {rank, id_of(left + right)});
    for (const std::int32_t part : {id_of(left), id_of(right)}) {
      if (std::binary_search(never_in_merges.begin(), never_in_merges.end(), part)) {
        unknown_never_merges_ = false;
      }
    }
    ++rank;
  }
}

/// A merge joins a token that ends with one character and a token that begins with another, so two
/// characters that no merge brings together stay apart in every text.
void BpeModel::find_barriers(const BpeDescription& description) {
  std::set<std::int32_t> numbers;
  for (const auto& [spelled, id] : description.vocab) {
    numbers.insert(id);
  }
  // Merges go by numbers: where two texts have one, what a merge joins has other characters, too.
  has_barriers_ = numbers.size() == description.vocab.size();
  std::set<std::pair<char32_t, char32_t>> others;
  for (const auto& [left, right] : description.merges) {
    if (left.empty() || right.empty()) {
      continue;
    }
    std::string_view rest = right;
    const char32_t before = last_character(left);
    const char32_t after = take_character(rest);
    const std::size_t left_number = near_number(before);
    const std::size_t right_number = near_number(after);
    if (std::max(left_number, right_number) < 255) {
      near_joins_.set(left_number << 8 | right_number);
    } else {
      others.emplace(before, after);
    }
  }
  other_joins_ = PairTable(others.size());
  for (const auto& [before, after] : others) {
    other_joins_.insert(before, after, {0, 0});
  }
}

std::int64_t BpeModel::unknown_bytes() const noexcept {
  return is_byte_level_ ? std::ranges::count(byte_ids_, -1) : 0;
}

std::int64_t BpeModel::lost_places(std::span<const std::int32_t> ids) const {
  const bool has_all_bytes = is_byte_level_ ? unknown_bytes() == 0 : has_all_byte_tokens_;
  if (has_all_bytes) {
    return 0;  // the unknown token has a name alone, often that of the end of text
  }
  return unknown_token_ ? std::ranges::count(ids, unknown_id_) : left_out_;
}

/// Whether the tokens of its bytes stand for it.
bool BpeModel::falls_back(std::string_view spelled) const {
  return byte_fallback_ && std::ranges::all_of(spelled, [&](unsigned char byte) {
           return byte_token_ids_[byte] >= 0;
         });
}

/// As the library has it: bytes of a fallback come before an unknown token that is still open.
void BpeModel::add_unknown(std::string_view spelled) {
  if (falls_back(spelled)) {
    for (const unsigned char byte : spelled) {
      row_.push_back(byte_token_ids_[byte]);
    }
    return;
  }
  if (!unknown_token_) {
    ++left_out_;
    return;
  }
  if (unknown_id_ < 0) {
    throw UserError(ExitCode::config,
                    format_message("{}: a text has the character '{}' (the vocabulary lacks it, "
                                   "and the unknown token '{}', too); use another tokenizer",
                                   file_, spelled, *unknown_token_));
  }
  if (!fuse_unknown_) {
    close_unknown();
  }
  unknown_is_open_ = true;
}

void BpeModel::encode(std::string_view word, std::vector<std::int32_t>& ids) {
  FOURFOLD_EXPECT(!word.empty());
  if (is_byte_level_) {
    encode_bytes(word, ids);
    return;
  }
  if (const auto whole = whole_words_.find(word); whole != whole_words_.end()) {
    ids.push_back(whole->second);
    return;
  }
  std::size_t begin = 0;
  char32_t left = 0;
  std::int32_t left_id = -1;
  for (std::size_t place = 0; place < word.size();) {
    std::string_view rest = word.substr(place);
    const char32_t right = take_character(rest);
    const std::int32_t right_id = id_of_character(right);
    const bool are_apart =
        left_id >= 0 && right_id >= 0 ? is_barrier(left, right) : unknown_never_merges_;
    if (place > 0 && has_barriers_ && are_apart) {
      end_part(word.substr(begin, place - begin), ids);
      begin = place;
    }
    const std::size_t end = word.size() - rest.size();
    if (right_id >= 0) {
      add_known(right_id);
    } else {
      add_unknown(word.substr(place, end - place));
    }
    place = end;
    left = right;
    left_id = right_id;
  }
  end_part(word.substr(begin), ids);
  encode_parts(ids);
}

void BpeModel::encode_bytes(std::string_view bytes, std::vector<std::int32_t>& ids) {
  FOURFOLD_EXPECT(takes_any_bytes());
  if (!is_byte_level_) {
    for (const unsigned char byte : bytes) {
      ids.push_back(byte_token_ids_[byte]);
    }
    return;
  }
  const bool may_be_known = !leaves_bytes_out_ && bytes.size() <= WordMemory::most_bytes;
  const std::uint64_t hash = may_be_known ? WordMemory::hash_of(bytes) : 0;
  if (may_be_known && remembered_.recall(bytes, hash, ids)) {
    return;
  }
  const std::size_t before = ids.size();
  if (const auto whole = whole_words_.find(bytes); whole != whole_words_.end()) {
    ids.push_back(whole->second);
  } else {
    for (const unsigned char byte : bytes) {
      if (byte_ids_[byte] >= 0) {
        add_known(byte_ids_[byte]);
      } else {
        add_unknown(spelling_of_byte(byte));
      }
    }
    close_unknown();
    merger_.merge(row_, ids);
    row_.clear();
  }
  if (may_be_known) {
    remembered_.remember(bytes, hash, ids.data() + before, ids.size() - before);
  }
}

/// Most parts of a text are one character, and two are soon merged: their memory would be slower.
void BpeModel::end_part(std::string_view text, std::vector<std::int32_t>& ids) {
  close_unknown();
  Part& part = parts_[parts_count_++];
  part = {.text = text, .end = row_.size()};
  const std::size_t begin = parts_count_ > 1 ? parts_[parts_count_ - 2].end : 0;
  part.may_be_known = part.end - begin > 2 && text.size() <= WordMemory::most_bytes;
  if (part.may_be_known) {
    part.hash = WordMemory::hash_of(text);
    remembered_.prefetch(part.hash);
  }
  if (parts_count_ == parts_.size()) {
    encode_parts(ids);
  }
}

void BpeModel::encode_parts(std::vector<std::int32_t>& ids) {
  const std::span<const std::int32_t> row(row_);
  std::size_t begin = 0;
  for (const Part& part : std::span(parts_).first(parts_count_)) {
    const auto symbols = row.subspan(begin, part.end - begin);
    begin = part.end;
    if (part.may_be_known && remembered_.recall(part.text, part.hash, ids)) {
      continue;
    }
    const std::size_t before = ids.size();
    merger_.merge(symbols, ids);
    if (part.may_be_known) {
      remembered_.remember(part.text, part.hash, ids.data() + before, ids.size() - before);
    }
  }
  row_.clear();
  parts_count_ = 0;
}

}  // namespace fourfold::data::detail
