// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "save/replicas.hpp"

#include "format/checkpoint_contents.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/fingerprint.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace fourfold::io {
namespace {

/// Words of several ranks are equal where max(w) == min(w), and min(w) == ~max(~w): one reduction.
/// A rank without a word contributes zeros, which win neither.
std::vector<bool> equal_everywhere(comm::Communicator& communicator,
                                   std::span<const std::uint64_t> words,
                                   const std::vector<bool>& has_word) {
  const std::size_t count = words.size();
  std::vector<std::uint64_t> both(2 * count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (has_word[i]) {
      both[i] = words[i];
      both[count + i] = ~words[i];
    }
  }
  communicator.host()
      .all_reduce(TensorView(both.data(), {std::ssize(both)}), comm::ReduceOp::max, {})
      .wait({});
  std::vector<bool> equal(count);
  for (std::size_t i = 0; i < count; ++i) {
    equal[i] = both[i] == ~both[count + i];
  }
  return equal;
}

/// XXH3-128 of bytes that are done with chunk by chunk.
std::array<std::uint64_t, 2> hash_of(std::span<const std::byte> bytes, const DoneWith& done_with) {
  Fingerprint fingerprint;
  for (std::uint64_t begin = 0; begin < bytes.size(); begin += chunk_bytes) {
    const auto chunk =
        bytes.subspan(begin, std::min<std::uint64_t>(chunk_bytes, bytes.size() - begin));
    fingerprint.add(chunk);
    if (done_with) {
      done_with(chunk.data(), chunk.size());
    }
  }
  return fingerprint.words();
}

/// Which ranks differ: those outside the largest group of equal copies, or all when there is none.
std::string difference(const Replica& replica, comm::Communicator& communicator) {
  const std::string mine = replica.mine != nullptr
                               ? fmt::format("{:016x}{:016x}", replica.hash[1], replica.hash[0])
                               : "";
  const std::vector<std::string> hashes = comm::all_gather_text(communicator, mine);
  std::map<std::string, std::vector<std::size_t>> ranks_of;
  for (std::size_t rank = 0; rank < hashes.size(); ++rank) {
    if (!hashes[rank].empty()) {
      ranks_of[hashes[rank]].push_back(rank);
    }
  }
  std::size_t largest = 0;
  for (const auto& [hash, ranks] : ranks_of) {
    largest = std::max(largest, ranks.size());
  }
  const auto majority = std::find_if(ranks_of.begin(), ranks_of.end(), [&](const auto& group) {
    return group.second.size() == largest;
  });
  const bool is_tie = std::count_if(ranks_of.begin(), ranks_of.end(), [&](const auto& group) {
                        return group.second.size() == largest;
                      }) > 1;
  std::vector<std::size_t> differing;
  for (const auto& [hash, ranks] : ranks_of) {
    if (is_tie || hash != majority->first) {
      differing.insert(differing.end(), ranks.begin(), ranks.end());
    }
  }
  std::sort(differing.begin(), differing.end());
  return format_message("tensor {} box {}: {} {}", replica.layout->id.str(),
                        replica.held->box.str(),
                        is_tie ? "no two agree among ranks" : "differs from the majority on rank",
                        fmt::join(differing, ", "));
}

}  // namespace

std::vector<Replica> replicas_of(std::span<const TensorLayout> layouts, const HeldData& data) {
  std::vector<Replica> replicas;
  for (std::size_t tensor = 0; tensor < layouts.size(); ++tensor) {
    const TensorLayout& layout = layouts[tensor];
    for (std::size_t box = 0; box < layout.boxes.size(); ++box) {
      const HeldBox& held = layout.boxes[box];
      if (!held.box.empty() && held.holders.size() >= 2) {
        replicas.push_back({&layout, &held, data[tensor][box]});
      }
    }
  }
  return replicas;
}

void hash_replicas(std::vector<Replica>& replicas, const DoneWith& done_with) {
  for (Replica& replica : replicas) {
    if (replica.mine != nullptr) {
      const std::size_t bytes = replica.held->box.elements() * size_in_bytes(replica.layout->dtype);
      replica.hash = hash_of({replica.mine, bytes}, done_with);
    }
  }
}

bool same_on_all_ranks(comm::Communicator& communicator, std::span<const std::uint64_t> words) {
  const auto equal = equal_everywhere(communicator, words, std::vector<bool>(words.size(), true));
  return std::all_of(equal.begin(), equal.end(), [](bool same) { return same; });
}

void compare_replicas(const std::vector<Replica>& replicas, comm::Communicator& communicator) {
  std::vector<std::uint64_t> words;
  std::vector<bool> has_word;
  for (const Replica& replica : replicas) {
    words.insert(words.end(), replica.hash.begin(), replica.hash.end());
    has_word.insert(has_word.end(), 2, replica.mine != nullptr);
  }
  const std::vector<bool> equal = equal_everywhere(communicator, words, has_word);
  constexpr int shown = 8;
  int found = 0;
  std::string report;
  for (std::size_t i = 0; i < replicas.size(); ++i) {
    if (equal[2 * i] && equal[2 * i + 1]) {
      continue;
    }
    if (found++ < shown) {
      report += "\n  " + difference(replicas[i], communicator);
    }
  }
  if (found == 0) {
    return;
  }
  throw SystemError(
      ExitCode::data_corrupt,
      format_message(
          "{} replicated tensors have diverged between ranks that must hold the same bits "
          "(a faulty node or a bug); nothing was saved, go on from the last checkpoint:{}{}",
          found, MadeLines{report}, MadeLines{found > shown ? "\n  ..." : ""}));
}

}  // namespace fourfold::io
