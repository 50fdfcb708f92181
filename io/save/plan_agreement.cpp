// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "payload/save_job.hpp"
#include "save/replicas.hpp"
#include "save/written_exchange.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/fingerprint.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::io {
namespace {

std::string hash_of(std::string_view text) {
  Fingerprint fingerprint;
  fingerprint.add(text);
  return fingerprint.str();
}

/// All that ranks must agree on, piece by piece, in words short enough to be gathered.
std::vector<std::string> facts_of(const SaveRequest& request, const PlanOptions& options,
                                  const std::filesystem::path& directory, int ranks) {
  std::vector<std::string> facts = {
      fmt::format("step {}", request.step), fmt::format("mesh {}", request.mesh.str()),
      fmt::format("directory {}", directory.string()),
      fmt::format("parts of at least {} bytes", options.smallest_part_bytes),
      fmt::format("files of the ranks: {}",
                  options.file_of_rank.empty()
                      ? "one each"
                      : fmt::format("{}", fmt::join(options.file_of_rank, ",")))};
  for (const auto& [name, value] : request.scalars.integers) {
    facts.push_back(fmt::format("scalar {} = {}", name, value));
  }
  for (const auto& [name, value] : request.scalars.reals) {
    facts.push_back(fmt::format("scalar {} = {} (bits {:016x})", name, value,
                                std::bit_cast<std::uint64_t>(value)));
  }
  for (const auto& [name, value] : request.scalars.texts) {
    facts.push_back(
        fmt::format("text {} of {} bytes (XXH3-128 {})", name, value.size(), hash_of(value)));
  }
  for (const TensorLayout& layout : request.tensors) {
    facts.push_back(fmt::format("tensor {} {} {} in {} boxes (layout {})", layout.id.str(),
                                name(layout.dtype), layout.shape.str(), layout.boxes.size(),
                                plan_fingerprint({&layout, 1}, ranks, options)));
  }
  return facts;
}

const std::string& fact(const std::vector<std::string>& facts, std::size_t index) {
  static const std::string nothing = "nothing more";
  return index < facts.size() ? facts[index] : nothing;
}

bool first_are_equal(const std::vector<std::string>& facts, std::size_t count,
                     comm::Communicator& communicator) {
  Fingerprint fingerprint;
  for (std::size_t i = 0; i < count; ++i) {
    fingerprint.add(std::string_view(fact(facts, i)));
  }
  return same_on_all_ranks(communicator, fingerprint.words());
}

/// By halves: as many reductions as the number of facts has bits. @pre there is a difference
std::size_t first_difference(const std::vector<std::string>& facts,
                             comm::Communicator& communicator) {
  auto equal = std::size_t{0};
  std::size_t different =
      comm::all_reduce_scalar(communicator, std::ssize(facts), comm::ReduceOp::max);
  while (different - equal > 1) {
    const std::size_t middle = equal + (different - equal) / 2;
    (first_are_equal(facts, middle, communicator) ? equal : different) = middle;
  }
  return equal;
}

/// "ranks 0, 1, 2, 3, ... (1024 in all)"
std::string ranks_text(const std::vector<std::size_t>& ranks) {
  constexpr std::size_t shown = 8;
  const auto named = std::span(ranks).first(std::min(ranks.size(), shown));
  return fmt::format("{} {}{}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(named, ", "),
                     ranks.size() > shown ? fmt::format(", ... ({} in all)", ranks.size()) : "");
}

/// One line for each opinion, the rarest first.
std::string opinions(const std::string& mine, comm::Communicator& communicator) {
  constexpr std::size_t shown = 4;
  const std::vector<std::string> all = comm::all_gather_text(communicator, mine);
  std::map<std::string, std::vector<std::size_t>> ranks_of;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    ranks_of[all[rank]].push_back(rank);
  }
  std::vector<std::pair<std::string, std::vector<std::size_t>>> groups(ranks_of.begin(),
                                                                       ranks_of.end());
  std::sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) {
    return std::pair(a.second.size(), a.second.front()) <
           std::pair(b.second.size(), b.second.front());
  });
  std::string lines;
  for (std::size_t group = 0; group < std::min(groups.size(), shown); ++group) {
    lines += format_message("\n  {}: {}", ranks_text(groups[group].second), groups[group].first);
  }
  return groups.size() > shown ? lines + "\n  ..." : lines;
}

}  // namespace

void agree_on_plan(const SaveRequest& request, const PlanOptions& options,
                   const std::filesystem::path& directory, comm::Communicator& communicator) {
  Fingerprint fingerprint;
  add_run_facts(fingerprint, request);
  fingerprint.add(std::string_view(directory.string()));
  fingerprint.add(
      std::string_view(plan_fingerprint(request.tensors, communicator.size(), options)));
  if (same_on_all_ranks(communicator, fingerprint.words())) {
    return;
  }
  const auto facts = facts_of(request, options, directory, communicator.size());
  const std::size_t first = first_difference(facts, communicator);
  throw SystemError(
      ExitCode::internal,
      format_message("ranks disagree on what the checkpoint of step {} holds; nothing was saved. "
                     "The first difference:{}",
                     request.step, MadeLines{opinions(fact(facts, first), communicator)}));
}

}  // namespace fourfold::io
