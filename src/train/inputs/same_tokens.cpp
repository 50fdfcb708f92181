// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/data/token_record.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/runfile/run_key.hpp>
#include <fourfold/train/same_tokens.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <sstream>
#include <utility>

namespace fourfold::train {

namespace {

std::string digest_of_samples(const io::TokenFile& file, std::int64_t windows) {
  constexpr std::int64_t window_tokens = 1024;
  std::vector<std::int32_t> tokens(std::min(window_tokens, file.tokens()));
  io::Fingerprint samples;
  const std::int64_t last = file.tokens() - std::ssize(tokens);
  for (std::int64_t i = 0; i < windows; ++i) {
    file.read(windows == 1 ? 0 : last * i / (windows - 1), tokens);
    samples.add(std::as_bytes(std::span(tokens)));
  }
  return samples.str().substr(0, 16);
}

std::string time_of(const std::string& file) {
  struct stat found {};
  return ::stat(file.c_str(), &found) == 0
             ? fmt::format("{}", found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec)
             : "-";
}

/// "TOKENS TIME" of each file: the same on all ranks where they read one file system.
std::vector<std::string> looks_of(const data::TokenDataset& dataset) {
  std::vector<std::string> looks = token_times(dataset);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    looks[i] = fmt::format("{} {}", dataset.files()[i].tokens(), looks[i]);
  }
  return looks;
}

std::vector<std::string> from_rank_0(std::span<const std::string> mine, comm::Communicator& world) {
  std::string text;
  for (const std::string& line : mine) {
    text += line + '\n';
  }
  std::istringstream lines(comm::broadcast_text(world, text, 0));
  std::vector<std::string> theirs;
  for (std::string line; std::getline(lines, line);) {
    theirs.push_back(line);
  }
  return theirs;
}

/// The file that is another one on rank 0; empty: none.
std::string other_file(const data::TokenDataset& dataset, const std::vector<std::string>& digests,
                       const std::vector<std::string>& rank_0s) {
  for (std::size_t i = 0; i < std::min(digests.size(), rank_0s.size()); ++i) {
    if (!can_be_same_tokens(rank_0s[i], digests[i])) {
      return dataset.files()[i].path().string();
    }
  }
  return digests.size() == rank_0s.size()
             ? ""
             : format_message("a pattern that matches {} files here and {} on rank 0",
                              digests.size(), rank_0s.size());
}

}  // namespace

std::vector<std::string> token_digests(const data::TokenDataset& dataset) {
  constexpr std::int64_t most_windows_of_all = 1024;
  const std::int64_t windows = std::clamp<std::int64_t>(
      most_windows_of_all / std::max<std::int64_t>(std::ssize(dataset.files()), 1), 1,
      most_token_windows);
  std::vector<std::string> digests;
  for (const io::TokenFile& file : dataset.files()) {
    const auto record = data::token_record_of(file);
    digests.push_back(fmt::format(
        "{}:{}", digest_of_samples(file, windows),
        record && !record->tokens_digest.empty() ? record->tokens_digest.substr(0, 16) : "-"));
  }
  return digests;
}

bool can_be_same_tokens(const std::string& one, const std::string& other) {
  const auto parts = [](const std::string& digest) {
    return std::pair(digest.substr(0, digest.find(':')), digest.substr(digest.find(':') + 1));
  };
  const auto [samples, record] = parts(one);
  const auto [other_samples, other_record] = parts(other);
  return samples == other_samples &&
         (record == other_record || record == "-" || other_record == "-");
}

std::vector<std::string> token_times(const data::TokenDataset& dataset) {
  std::vector<std::string> times;
  for (const io::TokenFile& file : dataset.files()) {
    times.push_back(time_of(file.path().string()));
  }
  return times;
}

void require_same_tokens(const data::TokenDataset& dataset, const std::string& what,
                         comm::Communicator& world) {
  const std::vector<std::string> looks = looks_of(dataset);
  const std::int64_t differs = looks == from_rank_0(looks, world) ? 0 : 1;
  if (comm::all_reduce_scalar(world, differs, comm::ReduceOp::max) == 0) {
    return;
  }
  std::vector<std::string> digests;
  comm::collective_try(world, [&] {
    if (differs != 0 || world.rank() == 0) {
      digests = token_digests(dataset);
    }
  });
  const std::vector<std::string> rank_0s = from_rank_0(digests, world);
  const std::vector<std::string> others =
      comm::all_gather_text(world, differs == 0 ? "" : other_file(dataset, digests, rank_0s));
  const auto first = std::ranges::find_if(others, [](const auto& file) { return !file.empty(); });
  if (first != others.end()) {
    throw UserError(
        ExitCode::config,
        format_message("{}: rank {} reads other tokens than rank 0 under one name ({}); each node "
                       "has a copy of its own: make them alike, or name files that all see",
                       what, first - others.begin(), *first));
  }
}

namespace {

/// Which line of rank 0's this rank disagrees with first, fixed width so that texts sort like
/// numbers, and what it says; empty: none.
std::string first_difference(std::span<const std::string> own,
                             std::span<const std::string> rank_0s) {
  const auto [mine, theirs] = std::ranges::mismatch(own, rank_0s);
  if (mine == own.end() || theirs == rank_0s.end()) {
    return {};
  }
  return fmt::format("{:08}{}", mine - own.begin(), *mine);
}

constexpr std::size_t number_width = 8;

}  // namespace

std::vector<std::string> lines_of(const runfile::RunConfig& config) {
  std::vector<std::string> lines;
  for (const runfile::RunKey& key : runfile::run_keys()) {
    lines.push_back(
        format_message("{} = {}", key.full_name, runfile::to_toml(key.field.get(config))));
  }
  return lines;
}

void require_same_on_ranks(std::span<const std::string> lines, comm::Communicator& world) {
  const std::vector<std::string> rank_0s = from_rank_0(lines, world);
  const std::vector<std::string> differences =
      comm::all_gather_text(world, first_difference(lines, rank_0s));
  std::string first;
  for (const std::string& difference : differences) {
    if (!difference.empty() && (first.empty() || difference < first)) {
      first = difference;
    }
  }
  if (first.empty()) {
    return;
  }
  const std::string number = first.substr(0, number_width);
  std::vector<std::pair<std::string, std::vector<int>>> ranks_by_line;  // rank 0's first
  for (int rank = 0; rank < std::ssize(differences); ++rank) {
    const bool here = differences[rank].starts_with(number);
    const std::string line =
        here ? differences[rank].substr(number_width) : rank_0s[std::stoul(number)];
    auto group =
        std::ranges::find(ranks_by_line, line, &decltype(ranks_by_line)::value_type::first);
    if (group == ranks_by_line.end()) {
      group = ranks_by_line.insert(group, {line, {}});
    }
    group->second.push_back(rank);
  }
  std::vector<std::string> parts;
  for (const auto& [line, ranks] : ranks_by_line) {
    parts.push_back(fmt::format("{} on {}", line, ranks_text(ranks)));
  }
  throw UserError(ExitCode::config, format_message("the ranks were started differently ({}); start "
                                                   "all of them with the same run file and options",
                                                   fmt::join(parts, "; ")));
}

}  // namespace fourfold::train
