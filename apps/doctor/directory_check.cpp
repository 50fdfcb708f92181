// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "node_facts.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold::doctor {
namespace {

using telemetry::bytes_text;

/// File systems are shared and vary: only this far below the median is worth a word.
constexpr double slow_disk_share = 0.25;
/// What is less is over too soon to say how fast it was.
constexpr std::int64_t timed_bytes = std::int64_t{1} << 20;

using Facts = std::vector<DirectoryFacts>;

/// Fewer than half have it: they are bad. Else it is nobody's alone.
void blame(const Facts& facts, const std::vector<std::string>& nodes, const std::string& finding,
           Check& check) {
  if (2 * nodes.size() < facts.size()) {
    check.fail_nodes(nodes, finding);
  } else {
    check.fail(finding);
  }
}

void check_problems(const Facts& facts, Check& check) {
  const auto has_problem = [](const DirectoryFacts& one) { return !one.problem.empty(); };
  const auto bad = nodes_where(facts, has_problem);
  if (!bad.empty()) {
    blame(facts, bad,
          fmt::format("{}: {}", first_of(bad), std::ranges::find_if(facts, has_problem)->problem),
          check);
  }
}

void check_sharing(const Facts& facts, Check& check) {
  const auto apart = strangers(facts);
  if (!apart) {
    check.fail(
        format_message("{} is not a shared file system (nodes do not see what {} and {} write "
                       "there); choose a directory that all nodes have in common",
                       facts[0].probed, facts[0].node, facts[1].node));
  } else if (!apart->empty()) {
    check.fail_nodes(
        *apart,
        fmt::format("{} {} another {} than the other nodes (not mounted there, or "
                    "something of its own over it); leave out, or have it mounted",
                    first_of(*apart), apart->size() == 1 ? "has" : "have", facts.front().probed));
  }
}

void check_room(const Directory& directory, const Facts& facts, Check& check) {
  const auto has_less = [](std::int64_t needed_bytes) {
    return [needed_bytes](const DirectoryFacts& one) {
      return one.free_bytes >= 0 && one.free_bytes < needed_bytes;
    };
  };
  const auto figures = [&](std::int64_t needed_bytes) {
    const auto first = std::ranges::find_if(facts, has_less(needed_bytes));
    return fmt::format("{} has {} free in {}, and the run needs {}", first->node,
                       bytes_text(first->free_bytes), first->probed, bytes_text(needed_bytes));
  };
  const std::string advice = " free some, or choose another file system";
  const auto full = nodes_where(facts, has_less(directory.least_bytes));
  const std::string too_little = " (it would end with 73)" + advice;
  if (!full.empty() && directory.use == Directory::Use::node) {
    blame(facts, full, figures(directory.least_bytes) + too_little, check);
  } else if (!full.empty()) {
    check.fail(figures(directory.least_bytes) + too_little);
  } else if (std::ranges::any_of(facts, has_less(directory.needed_bytes))) {
    check.warn(figures(directory.needed_bytes) + " (a later save would end with 73)" + advice +
               ", or keep fewer");
  }
  const auto few = std::ranges::find_if(facts, [&](const DirectoryFacts& one) {
    return one.free_files >= 0 && one.free_files < directory.needed_files;
  });
  if (few != facts.end()) {
    check.fail(
        format_message("{} files can still be made in {}, and {} are needed (inodes; it would "
                       "end with 73); remove some, or set checkpoint.files to \"node\"",
                       few->free_files, few->probed, directory.needed_files));
  }
}

double mb_per_s(const DirectoryFacts& facts, double DirectoryFacts::*seconds) {
  return static_cast<double>(facts.bytes) / 1e6 / (facts.*seconds);
}

/// Of those that wrote, or read.
std::vector<double> rates_of(const Facts& facts, double DirectoryFacts::*seconds) {
  std::vector<double> rates;
  for (const DirectoryFacts& each : facts) {
    if (each.problem.empty() && each.*seconds > 0) {
      rates.push_back(mb_per_s(each, seconds));
    }
  }
  return rates;
}

void check_speed(const Directory& directory, const Facts& facts, Check& check) {
  double DirectoryFacts::*const figure =
      directory.use == Directory::Use::data ? &DirectoryFacts::read_s : &DirectoryFacts::write_s;
  const double usual = median(rates_of(facts, figure));
  const auto slow = nodes_where(facts, [&](const DirectoryFacts& one) {
    return one.problem.empty() && one.bytes >= timed_bytes && one.*figure > 0 &&
           mb_per_s(one, figure) < slow_disk_share * usual;
  });
  if (!slow.empty()) {
    check.warn(
        fmt::format("{} is slower than a quarter of the median, {:.0f} MB/s (its disk or its "
                    "way to the file system; or others use it); measure again",
                    first_of(slow), usual));
  }
}

std::string summary_of(const Directory& directory, const Facts& facts) {
  const DirectoryFacts& first = facts.front();
  std::string text = first.probed;
  if (directory.use == Directory::Use::data) {
    text = fmt::format("{}: {} tokens", directory.path, telemetry::count_text(first.tokens));
  } else if (first.probed != directory.path) {
    text += fmt::format(" (for {}, which is not there yet)", directory.path);
  }
  for (const auto& [what, figure] :
       {std::pair{"write", &DirectoryFacts::write_s}, std::pair{"read", &DirectoryFacts::read_s}}) {
    if (const std::vector<double> rates = rates_of(facts, figure); !rates.empty()) {
      text += fmt::format(", {} {:.0f} MB/s", what, std::ranges::min(rates));
    }
  }
  if (facts.size() > 1) {
    text += " on the slowest node";
  }
  return first.free_bytes < 0 ? text
                              : text + fmt::format(", {} free", bytes_text(first.free_bytes));
}

}  // namespace

std::optional<std::vector<std::string>> strangers(const std::vector<DirectoryFacts>& facts) {
  for (bool DirectoryFacts::*const sees :
       {&DirectoryFacts::sees_first, &DirectoryFacts::sees_second}) {
    const auto others = nodes_where(facts, [&](const DirectoryFacts& one) { return !(one.*sees); });
    if (2 * others.size() < facts.size()) {
      return others;
    }
  }
  return std::nullopt;
}

Check directory_check(const Directory& directory, std::vector<DirectoryFacts> facts) {
  Check check(directory.key);
  if (directory.use == Directory::Use::first_rank) {
    facts.resize(1);
  }
  check.say(summary_of(directory, facts));
  check_problems(facts, check);
  const bool is_shared = directory.use == Directory::Use::shared;
  if (check.status() != Status::fail && is_shared && facts.size() > 1) {
    check_sharing(facts, check);
  }
  check_room(directory, facts, check);
  check_speed(directory, facts, check);
  const auto differing = nodes_where(
      facts, [&](const DirectoryFacts& one) { return one.tokens != facts.front().tokens; });
  if (check.status() == Status::ok && !differing.empty()) {
    check.fail(
        format_message("{} sees another number of tokens than {} (not the same files); put the "
                       "data where all nodes see it",
                       first_of(differing), facts.front().node));
  }
  if (is_shared && std::ranges::any_of(facts, [](const DirectoryFacts& one) {
        return one.problem.empty() && !one.has_links;
      })) {
    check.warn(
        "link() does not work there (what keeps a second job from writing to it is less "
        "safe without); do not start two jobs on one directory");
  }
  return check;
}

}  // namespace fourfold::doctor
