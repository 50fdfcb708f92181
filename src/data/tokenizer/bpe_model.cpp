// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe_model.hpp"

#include "unicode/unicode_text.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/byte_alphabet.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace fourfold::data::detail {
namespace {

/// Up to so many symbols the best merge is looked for in a row, beyond in a heap: the first is the
/// faster for words, the second for long runs.
constexpr std::uint32_t most_in_a_row = 128;
/// Ranks that leave room for a place beside them in 32 bits.
constexpr std::size_t most_ranks_in_a_row = (std::uint32_t{1} << 25) - 1;

[[noreturn]] void corrupt(const BpeDescription& description, const std::string& problem) {
  throw UserError(ExitCode::data_corrupt,
                  format_message("{}: {}; the tokenizer file is damaged, fetch or make it again",
                                 description.file.string(), problem));
}

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

std::uint64_t ascii_pair(char32_t left, char32_t right) noexcept {
  return static_cast<std::uint64_t>(left) << 7 | right;
}

}  // namespace

BpeModel::BpeModel(const BpeDescription& description)
    : is_byte_level_(description.is_byte_level),
      byte_fallback_(description.byte_fallback),
      fuse_unknown_(description.fuse_unknown),
      file_(description.file.string()),
      unknown_token_(description.unknown_token),
      merges_count_(description.merges.size()),
      merges_(description.merges.size()) {
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
        byte_ids_[static_cast<unsigned char>(word->front())] = id;
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
    byte_token_ids_[static_cast<std::size_t>(byte)] = id_or_none(ids, byte_token(byte));
    never_in_merges.push_back(byte_token_ids_[static_cast<std::size_t>(byte)]);
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
        corrupt(description,
                format_message(
                    "merge {} ('{}' and '{}') needs the token '{}', which the vocabulary lacks",
                    rank, left, right, token));
      }
      return id;
    };
    merges_.insert(id_of(left), id_of(right), {rank, id_of(left + right)});
    for (const std::int32_t part : {id_of(left), id_of(right)}) {
      if (std::binary_search(never_in_merges.begin(), never_in_merges.end(), part)) {
        unknown_never_merges_ = false;
      }
    }
    ++rank;
  }
}

/// A merge joins a token that ends with one character and a token that begins with another, so two
/// characters that no merge has at its seam stay apart in every text.
void BpeModel::find_barriers(const BpeDescription& description) {
  std::set<std::pair<char32_t, char32_t>> others;
  for (const auto& [left, right] : description.merges) {
    if (left.empty() || right.empty()) {
      continue;
    }
    std::string_view rest = right;
    const char32_t before = last_character(left);
    const char32_t after = take_character(rest);
    if (before < 128 && after < 128) {
      ascii_joins_.set(ascii_pair(before, after));
    } else {
      others.emplace(before, after);
    }
  }
  other_joins_ = PairTable(others.size());
  for (const auto& [before, after] : others) {
    other_joins_.insert(static_cast<std::int32_t>(before), static_cast<std::int32_t>(after),
                        {0, 0});
  }
}

int BpeModel::unknown_bytes() const noexcept {
  return is_byte_level_ ? static_cast<int>(std::count(byte_ids_.begin(), byte_ids_.end(), -1)) : 0;
}

std::int64_t BpeModel::lost_places(std::span<const std::int32_t> ids) const {
  const bool has_all_bytes = is_byte_level_ ? unknown_bytes() == 0 : has_all_byte_tokens_;
  if (has_all_bytes) {
    return 0;  // the unknown token has a name alone, often that of the end of text
  }
  return unknown_token_ ? std::ranges::count(ids, unknown_id_) : left_out_;
}

std::int32_t BpeModel::id_of_character(char32_t character) const {
  return character < character_ids_.size() ? character_ids_[character] : -1;
}

bool BpeModel::is_barrier(char32_t left, char32_t right) const {
  if (left < 128 && right < 128) {
    return !ascii_joins_[ascii_pair(left, right)];
  }
  return other_joins_.find(static_cast<std::int32_t>(left), static_cast<std::int32_t>(right)).rank <
         0;
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
  std::string_view rest = word;
  std::size_t begin = 0;
  char32_t left = take_character(rest);
  bool left_is_known = id_of_character(left) >= 0;
  left_out_ += !left_is_known && leaves_out(word.substr(0, word.size() - rest.size())) ? 1 : 0;
  while (!rest.empty()) {
    const std::size_t place = word.size() - rest.size();
    const char32_t right = take_character(rest);
    const bool right_is_known = id_of_character(right) >= 0;
    if (!right_is_known && leaves_out(word.substr(place, word.size() - rest.size() - place))) {
      ++left_out_;
    }
    if (left_is_known && right_is_known ? is_barrier(left, right) : unknown_never_merges_) {
      encode_part(word.substr(begin, place - begin), ids);
      begin = place;
    }
    left = right;
    left_is_known = right_is_known;
  }
  encode_part(word.substr(begin), ids);
}

void BpeModel::encode_bytes(std::string_view bytes, std::vector<std::int32_t>& ids) {
  FOURFOLD_EXPECT(takes_any_bytes());
  if (is_byte_level_) {
    if (leaves_bytes_out_ && !whole_words_.contains(bytes)) {
      left_out_ += std::ranges::count_if(bytes, [&](char byte) {
        const auto value = static_cast<unsigned char>(byte);
        return byte_ids_[value] < 0 && leaves_out(spelling_of_byte(value));
      });
    }
    encode_part(bytes, ids);
    return;
  }
  for (const char byte : bytes) {
    ids.push_back(byte_token_ids_[static_cast<unsigned char>(byte)]);
  }
}

void BpeModel::encode_part(std::string_view part, std::vector<std::int32_t>& ids) {
  if (part.size() > WordMemory::most_bytes) {
    merge(part, ids);
    return;
  }
  if (!remembered_.recall(part, ids)) {
    const std::size_t before = ids.size();
    merge(part, ids);
    remembered_.remember(part, ids.data() + before, ids.size() - before);
  }
}

void BpeModel::add_symbol(std::int32_t id) {
  const auto place = static_cast<std::int32_t>(symbols_.size());
  if (place > 0) {
    symbols_.back().next = place;
  }
  symbols_.push_back({id, place - 1, -1});
}

void BpeModel::add_known(std::int32_t id, Unknown& unknown) {
  if (unknown) {
    add_symbol(*unknown);
    unknown.reset();
  }
  add_symbol(id);
}

/// Whether the tokens of its bytes stand for it.
bool BpeModel::falls_back(std::string_view spelled) const {
  return byte_fallback_ && std::ranges::all_of(spelled, [&](char byte) {
           return byte_token_ids_[static_cast<unsigned char>(byte)] >= 0;
         });
}

/// Whether nothing stands for what the vocabulary lacks.
bool BpeModel::leaves_out(std::string_view spelled) const {
  return !unknown_token_ && !falls_back(spelled);
}

/// As the library has it: bytes of a fallback come before an unknown token that is still open.
void BpeModel::add_unknown(std::string_view spelled, Unknown& unknown) {
  if (falls_back(spelled)) {
    for (const char byte : spelled) {
      add_symbol(byte_token_ids_[static_cast<unsigned char>(byte)]);
    }
    return;
  }
  if (!unknown_token_) {
    return;
  }
  if (unknown_id_ < 0) {
    throw UserError(
        ExitCode::config,
        format_message("{}: a text has the character '{}' (the vocabulary lacks it, and "
                       "the unknown token '{}', too); use another tokenizer",
                       file_, spelled, *unknown_token_));
  }
  if (unknown && !fuse_unknown_) {
    add_symbol(*unknown);
  }
  unknown = unknown_id_;
}

/// Puts the bytes or characters of a part in a row.
void BpeModel::start(std::string_view part) {
  symbols_.clear();
  Unknown unknown;
  while (!part.empty()) {
    if (is_byte_level_) {
      const auto byte = static_cast<unsigned char>(part.front());
      part.remove_prefix(1);
      if (byte_ids_[byte] >= 0) {
        add_known(byte_ids_[byte], unknown);
      } else {
        add_unknown(spelling_of_byte(byte), unknown);
      }
      continue;
    }
    const std::string_view from = part;
    const std::int32_t id = id_of_character(take_character(part));
    if (id >= 0) {
      add_known(id, unknown);
    } else {
      add_unknown(from.substr(0, from.size() - part.size()), unknown);
    }
  }
  if (unknown) {
    add_symbol(*unknown);
  }
}

void BpeModel::consider(std::int32_t position) {
  const Symbol& left = symbols_[static_cast<std::size_t>(position)];
  if (left.next < 0) {
    return;
  }
  const PairTable::Merge found =
      merges_.find(left.id, symbols_[static_cast<std::size_t>(left.next)].id);
  if (found.rank >= 0) {
    candidates_.push_back({found.rank, position, found.merged});
    std::push_heap(candidates_.begin(), candidates_.end(), std::greater<>());
  }
}

void BpeModel::merge(std::string_view part, std::vector<std::int32_t>& ids) {
  if (is_byte_level_) {  // otherwise `part` may be a part of a word only, and encode() has looked
    if (const auto whole = whole_words_.find(part); whole != whole_words_.end()) {
      ids.push_back(whole->second);
      return;
    }
  }
  start(part);
  if (symbols_.empty()) {
    return;  // all of it is left out
  }
  if (symbols_.size() <= most_in_a_row && merges_count_ <= most_ranks_in_a_row) {
    merge_row(ids);
  } else {
    merge_heap(ids);
  }
}

void BpeModel::merge_row(std::vector<std::int32_t>& ids) const {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  const std::size_t length = symbols_.size();
  std::array<std::uint32_t, most_in_a_row> order;  // rank of the merge with the next, then place
  std::array<std::int32_t, most_in_a_row> id;
  std::array<std::int32_t, most_in_a_row> merged;
  std::array<std::uint8_t, most_in_a_row + 1> next;  // length at the end
  std::array<std::uint8_t, most_in_a_row + 1> previous;
  const auto consider_pair = [&](std::size_t place) {
    order[place] = none;
    if (next[place] < length) {
      const PairTable::Merge found = merges_.find(id[place], id[next[place]]);
      merged[place] = found.merged;
      if (found.rank >= 0) {
        order[place] = static_cast<std::uint32_t>(found.rank) * most_in_a_row +
                       static_cast<std::uint32_t>(place);
      }
    }
  };
  for (std::size_t place = 0; place < length; ++place) {
    id[place] = symbols_[place].id;
    next[place] = static_cast<std::uint8_t>(place + 1);
    previous[place + 1] = static_cast<std::uint8_t>(place);
  }
  for (std::size_t place = 0; place < length; ++place) {
    consider_pair(place);
  }
  for (;;) {
    std::uint32_t best = none;
    for (std::size_t place = 0; place < length; ++place) {
      best = std::min(best, order[place]);
    }
    if (best == none) {
      break;
    }
    const std::size_t place = best % most_in_a_row;
    const std::size_t gone = next[place];
    id[place] = merged[place];
    order[gone] = none;
    next[place] = next[gone];
    previous[next[place]] = static_cast<std::uint8_t>(place);
    consider_pair(place);
    if (place > 0) {
      consider_pair(previous[place]);
    }
  }
  for (std::size_t place = 0; place < length; place = next[place]) {
    ids.push_back(id[place]);
  }
}

void BpeModel::merge_heap(std::vector<std::int32_t>& ids) {
  const auto length = static_cast<std::int32_t>(symbols_.size());
  candidates_.clear();
  for (std::int32_t i = 0; i < length; ++i) {
    consider(i);
  }
  while (!candidates_.empty()) {
    const Candidate best = candidates_.front();
    std::pop_heap(candidates_.begin(), candidates_.end(), std::greater<>());
    candidates_.pop_back();
    Symbol& left = symbols_[static_cast<std::size_t>(best.position)];
    if (left.id < 0 || left.next < 0) {
      continue;  // merged into its left neighbour, or nothing stands right of it any more
    }
    Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
    const PairTable::Merge now = merges_.find(left.id, right.id);
    if (now.rank < 0 || now.merged != best.merged) {
      continue;  // one of the two has changed since
    }
    left.id = best.merged;
    left.next = right.next;
    right.id = -1;
    if (left.next >= 0) {
      symbols_[static_cast<std::size_t>(left.next)].previous = best.position;
    }
    if (left.previous >= 0) {
      consider(left.previous);
    }
    consider(best.position);
  }
  for (std::int32_t i = 0; i >= 0; i = symbols_[static_cast<std::size_t>(i)].next) {
    ids.push_back(symbols_[static_cast<std::size_t>(i)].id);
  }
}

}  // namespace fourfold::data::detail
