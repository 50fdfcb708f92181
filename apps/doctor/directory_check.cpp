// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "directory_check.hpp"

#include "check.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::doctor {
namespace {

using telemetry::bytes_text;

/// File systems are shared and vary: only this far below the median is worth a word.
constexpr double slow_disk_share = 0.25;
/// What is less is over too soon to say how fast it was.
constexpr std::int64_t timed_bytes = std::int64_t{1} << 20;

struct Examined {
  const Directory& directory;
  std::span<const DirectoryFacts> facts;
  std::vector<std::string> nodes;  ///< of the facts

  template <class Holds>
  std::vector<std::size_t> where(const Holds& holds) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < facts.size(); ++i) {
      if (holds(facts[i])) {
        found.push_back(i);
      }
    }
    return found;
  }
  std::vector<std::string> names(std::span<const std::size_t> indices) const {
    return each(indices, [&](std::size_t i) { return nodes[i]; });
  }
};

/// Fewer than half have it: they are bad. Else it is nobody's alone.
void blame(const Examined& examined, const std::vector<std::size_t>& nodes,
           const std::string& finding, Check& check) {
  if (2 * nodes.size() < examined.facts.size()) {
    check.fail_nodes(examined.names(nodes), finding);
  } else {
    check.fail(finding);
  }
}

void check_problems(const Examined& examined, Check& check) {
  const auto bad = examined.where([](const DirectoryFacts& f) { return !f.problem.empty(); });
  if (!bad.empty()) {
    blame(examined, bad,
          fmt::format("{}: {}", first_of(examined.names(bad)), examined.facts[bad.front()].problem),
          check);
  }
}

void check_sharing(const Examined& examined, Check& check) {
  if (examined.directory.use != Directory::Use::shared || examined.facts.size() < 2) {
    return;
  }
  const auto apart = strangers(examined.facts);
  if (!apart) {
    check.fail(
        format_message("{} is not a shared file system (nodes do not see what {} and {} write "
                       "there); choose a directory that all nodes have in common",
                       examined.facts.front().probed, examined.nodes[0], examined.nodes[1]));
  } else if (!apart->empty()) {
    check.fail_nodes(
        examined.names(*apart),
        fmt::format("{} {} another {} than the other nodes (not mounted there, or "
                    "something of its own over it); leave out, or have it mounted",
                    first_of(examined.names(*apart)), apart->size() == 1 ? "has" : "have",
                    examined.facts.front().probed));
  }
}

void check_room(const Examined& examined, Check& check) {
  const Directory& directory = examined.directory;
  const auto full = examined.where([&](const DirectoryFacts& f) {
    return f.free_bytes >= 0 && f.free_bytes < directory.least_bytes;
  });
  const auto tight = examined.where([&](const DirectoryFacts& f) {
    return f.free_bytes >= 0 && f.free_bytes < directory.needed_bytes;
  });
  const auto figures = [&](std::size_t i, std::int64_t needed_bytes) {
    return fmt::format("{} has {} free in {}, and the run needs {}", examined.nodes[i],
                       bytes_text(examined.facts[i].free_bytes), examined.facts[i].probed,
                       bytes_text(needed_bytes));
  };
  const std::string advice = " free some, or choose another file system";
  if (!full.empty() && directory.use == Directory::Use::node) {
    blame(examined, full,
          figures(full.front(), directory.least_bytes) + " (it would end with 73)" + advice, check);
  } else if (!full.empty()) {
    check.fail(figures(full.front(), directory.least_bytes) + " (it would end with 73)" + advice);
  } else if (!tight.empty()) {
    check.warn(figures(tight.front(), directory.needed_bytes) +
               " (a later save would end with 73)" + advice + ", or keep fewer");
  }
  const auto few = examined.where([&](const DirectoryFacts& f) {
    return f.free_files >= 0 && f.free_files < directory.needed_files;
  });
  if (!few.empty()) {
    check.fail(
        format_message("{} files can still be made in {}, and {} are needed (inodes; it would "
                       "end with 73); remove some, or set checkpoint.files to \"node\"",
                       examined.facts[few.front()].free_files, examined.facts[few.front()].probed,
                       directory.needed_files));
  }
}

double mb_per_s(const DirectoryFacts& facts, double DirectoryFacts::*seconds) {
  return static_cast<double>(facts.bytes) / 1e6 / (facts.*seconds);
}

/// Of those that wrote, or read.
std::vector<double> rates_of(std::span<const DirectoryFacts> facts,
                             double DirectoryFacts::*seconds) {
  std::vector<double> rates;
  for (const DirectoryFacts& each : facts) {
    if (each.problem.empty() && each.*seconds > 0) {
      rates.push_back(mb_per_s(each, seconds));
    }
  }
  return rates;
}

void check_speed(const Examined& examined, Check& check) {
  double DirectoryFacts::*const figure = examined.directory.use == Directory::Use::data
                                             ? &DirectoryFacts::read_s
                                             : &DirectoryFacts::write_s;
  const double usual = median(rates_of(examined.facts, figure));
  const auto slow = examined.where([&](const DirectoryFacts& f) {
    return f.problem.empty() && f.bytes >= timed_bytes && f.*figure > 0 &&
           mb_per_s(f, figure) < slow_disk_share * usual;
  });
  if (!slow.empty()) {
    check.warn(
        fmt::format("{} is slower than a quarter of the median, {:.0f} MB/s (its disk or its "
                    "way to the file system; or others use it); measure again",
                    first_of(examined.names(slow)), usual));
  }
}

std::string summary_of(const Examined& examined) {
  const DirectoryFacts& first = examined.facts.front();
  const std::vector<double> writes = rates_of(examined.facts, &DirectoryFacts::write_s);
  const std::vector<double> reads = rates_of(examined.facts, &DirectoryFacts::read_s);
  std::string text = first.probed;
  if (examined.directory.use == Directory::Use::data) {
    text =
        fmt::format("{}: {} tokens", examined.directory.path, telemetry::count_text(first.tokens));
  } else if (std::string_view(first.probed) != examined.directory.path) {
    text += fmt::format(" (for {}, which is not there yet)", examined.directory.path);
  }
  if (!writes.empty()) {
    text += fmt::format(", write {:.0f} MB/s", std::ranges::min(writes));
  }
  if (!reads.empty()) {
    text += fmt::format(", read {:.0f} MB/s", std::ranges::min(reads));
  }
  if (examined.facts.size() > 1 && examined.directory.use != Directory::Use::first_rank) {
    text += " on the slowest node";
  }
  return first.free_bytes < 0 ? text
                              : text + fmt::format(", {} free", bytes_text(first.free_bytes));
}

}  // namespace

std::optional<std::vector<std::size_t>> strangers(std::span<const DirectoryFacts> facts) {
  for (bool DirectoryFacts::*const sees :
       {&DirectoryFacts::sees_first, &DirectoryFacts::sees_second}) {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < facts.size(); ++i) {
      if (!(facts[i].*sees)) {
        others.push_back(i);
      }
    }
    if (2 * others.size() < facts.size()) {
      return others;
    }
  }
  return std::nullopt;
}

Check directory_check(const Ranks& ranks, const Directory& directory,
                      std::span<const DirectoryFacts> facts) {
  Check check(directory.key);
  const bool is_alone = directory.use == Directory::Use::first_rank;
  const Examined examined{.directory = directory,
                          .facts = is_alone ? facts.first(1) : facts,
                          .nodes = ranks.distinct_nodes()};
  check.say(summary_of(examined));
  check_problems(examined, check);
  if (check.status() != Status::fail) {
    check_sharing(examined, check);
  }
  check_room(examined, check);
  check_speed(examined, check);
  const auto differing =
      examined.where([&](const DirectoryFacts& f) { return f.tokens != facts.front().tokens; });
  if (check.status() == Status::ok && !differing.empty()) {
    check.fail(
        format_message("{} sees another number of tokens than {} (not the same files); put the "
                       "data where all nodes see it",
                       first_of(examined.names(differing)), examined.nodes.front()));
  }
  const auto linkless =
      examined.where([](const DirectoryFacts& f) { return f.problem.empty() && !f.has_links; });
  if (directory.use == Directory::Use::shared && !linkless.empty()) {
    check.warn(
        "link() does not work there (what keeps a second job from writing to it is less "
        "safe without); do not start two jobs on one directory");
  }
  return check;
}

}  // namespace fourfold::doctor
