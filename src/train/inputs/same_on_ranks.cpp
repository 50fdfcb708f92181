// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/rank_identity.hpp>
#include <fourfold/runfile/run_key.hpp>
#include <fourfold/train/same_on_ranks.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace fourfold::train {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

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
        format_message("{} = {}", key.full_name(), runfile::to_toml(key.field.get(config))));
  }
  return lines;
}

void require_same_on_ranks(std::span<const std::string> lines, comm::Communicator& world) {
  const std::string own = fmt::format("{}\n", fmt::join(lines, "\n"));
  const std::vector<std::string> rank_0s = split(comm::broadcast_text(world, own, 0));
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
  for (std::size_t rank = 0; rank < differences.size(); ++rank) {
    const bool here = differences[rank].starts_with(number);
    const std::string line =
        here ? differences[rank].substr(number_width) : rank_0s[std::stoul(number)];
    auto group =
        std::ranges::find(ranks_by_line, line, &decltype(ranks_by_line)::value_type::first);
    if (group == ranks_by_line.end()) {
      group = ranks_by_line.insert(group, {line, {}});
    }
    group->second.push_back(static_cast<int>(rank));
  }
  std::vector<std::string> parts;
  for (const auto& [line, ranks] : ranks_by_line) {
    parts.push_back(fmt::format("{} on {}", line, ranks_text(ranks)));
  }
  throw UserError(
      ExitCode::config,
      format_message("the ranks were started differently ({}); start all of them with the "
                     "same run file and options",
                     fmt::join(parts, "; ")));
}

}  // namespace fourfold::train
