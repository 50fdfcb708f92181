// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "bpe_model.hpp"

#include "byte_alphabet.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::data::detail {
namespace {

constexpr std::size_t remembered_word_bytes = 64;
constexpr std::size_t remembered_words = 1 << 17;

[[noreturn]] void corrupt(const BpeDescription& description, const std::string& problem) {
  throw UserError(ExitCode::data_corrupt,
                  fmt::format("{}: {}; the tokenizer file is damaged or not one of byte-level "
                              "BPE",
                              description.file.string(), problem));
}

}  // namespace

BpeModel::BpeModel(const BpeDescription& description) : merges_(description.merges.size()) {
  read_vocabulary(description);
  read_merges(description);
}

void BpeModel::read_vocabulary(const BpeDescription& description) {
  std::int32_t largest = -1;
  for (const auto& [spelled, id] : description.vocab) {
    largest = std::max(largest, id);
  }
  for (const AddedToken& token : description.added) {
    largest = std::max(largest, token.id);
  }
  bytes_of_.resize(static_cast<std::size_t>(largest) + 1);
  byte_ids_.fill(-1);
  std::vector<const std::string*> spelling_of(bytes_of_.size(), nullptr);
  for (const auto& [spelled, id] : description.vocab) {
    const std::string*& spelling = spelling_of[static_cast<std::size_t>(id)];
    if (spelling != nullptr) {
      corrupt(description,
              fmt::format("'{}' and '{}' have the same number {}", *spelling, spelled, id));
    }
    spelling = &spelled;
    const std::optional<std::string> bytes = bytes_of_spelling(spelled);
    bytes_of_[static_cast<std::size_t>(id)] = bytes.value_or(spelled);
    if (bytes && bytes->size() == 1) {
      byte_ids_[static_cast<unsigned char>(bytes->front())] = id;
    }
    if (bytes && description.ignore_merges) {
      whole_words_.emplace(*bytes, id);
    }
  }
  for (const AddedToken& token : description.added) {
    const std::string* spelling = spelling_of[static_cast<std::size_t>(token.id)];
    if (spelling != nullptr && *spelling != token.content) {
      corrupt(description, fmt::format("'{}' and the added token '{}' have the same number {}",
                                       *spelling, token.content, token.id));
    }
    bytes_of_[static_cast<std::size_t>(token.id)] = token.content;
  }
  const auto missing = std::find(byte_ids_.begin(), byte_ids_.end(), -1);
  if (missing != byte_ids_.end()) {
    corrupt(description,
            fmt::format("the vocabulary has no token for byte {}", missing - byte_ids_.begin()));
  }
}

void BpeModel::read_merges(const BpeDescription& description) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(description.vocab.size());
  for (const auto& [spelled, id] : description.vocab) {
    ids.emplace(spelled, id);
  }
  std::int32_t rank = 0;
  for (const auto& [left, right] : description.merges) {
    const auto id_of = [&](const std::string& token) {
      const auto found = ids.find(token);
      if (found == ids.end()) {
        corrupt(
            description,
            fmt::format("merge {} ('{}' and '{}') needs the token '{}', which the vocabulary lacks",
                        rank, left, right, token));
      }
      return found->second;
    };
    merges_.insert(id_of(left), id_of(right), {rank, id_of(left + right)});
    ++rank;
  }
}

void BpeModel::encode(std::string_view word, std::vector<std::int32_t>& ids) {
  FOURFOLD_EXPECT(!word.empty());
  if (word.size() > remembered_word_bytes) {
    merge(word, ids);
    return;
  }
  if (const auto known = remembered_.find(word); known != remembered_.end()) {
    ids.insert(ids.end(), known->second.begin(), known->second.end());
    return;
  }
  const std::size_t before = ids.size();
  merge(word, ids);
  if (remembered_.size() == remembered_words) {
    remembered_.clear();  // a text whose words do not come back must not fill the memory
  }
  remembered_.emplace(word, std::vector<std::int32_t>(
                                ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end()));
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

void BpeModel::merge(std::string_view word, std::vector<std::int32_t>& ids) {
  if (const auto whole = whole_words_.find(word); whole != whole_words_.end()) {
    ids.push_back(whole->second);
    return;
  }
  const auto length = static_cast<std::int32_t>(word.size());
  symbols_.clear();
  for (std::int32_t i = 0; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(word[static_cast<std::size_t>(i)]);
    symbols_.push_back({byte_ids_[byte], i - 1, i + 1 < length ? i + 1 : -1});
  }
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
