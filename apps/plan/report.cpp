// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/plan/simulate.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace fourfold::plan_program {
namespace {

using schedule::Schedule;
using schedule::TimelineSummary;

double share(double part_s, const TimelineSummary& summary) {
  return summary.makespan_s() > 0 ? 100 * part_s / summary.makespan_s() : 0;
}

double highest_peak(const Schedule& schedule) {
  double highest = 0;
  for (int rank = 0; rank < schedule.stages; ++rank) {
    highest = std::max(highest, peak_of(schedule, rank));
  }
  return highest;
}

/// "15 + 1": of each chunk.
std::string slots_text(const Schedule& schedule, int rank) {
  std::string text;
  for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
    text += fmt::format("{}{}", chunk == 0 ? "" : " + ", schedule.slots(rank, chunk));
  }
  return text;
}

/// Of the same case; nothing for files and for links that cost something.
std::optional<double> bubble_of_literature(const Arguments& arguments) {
  return arguments.from_file() || arguments.link_s > 0
             ? std::nullopt
             : plan::bubble_closed_form(arguments.schedule, arguments.pass_costs());
}

std::optional<double> peak_of_literature(const Arguments& arguments, int rank) {
  return arguments.from_file() ? std::nullopt
                               : plan::peak_activations_closed_form(arguments.schedule, rank);
}

std::string or_dash(std::optional<double> value) {
  return value ? fmt::format("{:.6g}", *value) : "-";
}

}  // namespace

double peak_of(const Schedule& schedule, int rank) {
  return static_cast<double>(schedule.peak_live(rank)) / schedule.chunks;
}

std::string title(const Schedule& schedule) {
  return format_message(
      "{}: {} stages, {} micro-batches{}", schedule.name, schedule.stages, schedule.micro_batches,
      schedule.chunks > 1 ? fmt::format(", {} chunks per stage", schedule.chunks) : "");
}

std::string subtitle(const Arguments& arguments, const Schedule& schedule,
                     const schedule::Timeline& timeline) {
  const TimelineSummary summary = summarize(timeline);
  const std::string link =
      arguments.link_s > 0 ? fmt::format(", messages {:g}", arguments.link_s) : "";
  return fmt::format(
      "bubble {:.1f} %, activations of up to {:g} micro-batches per rank; forward {:g}, "
      "backward-input {:g}, backward-weight {:g}{}",
      share(summary.bubble_s(), summary), highest_peak(schedule), arguments.costs[0],
      arguments.costs[1], arguments.costs[2], link);
}

std::string report(const Arguments& arguments, const Schedule& schedule,
                   const schedule::Timeline& timeline) {
  const TimelineSummary summary = summarize(timeline);
  const double bubble_s = summary.bubble_s();
  const auto literature = bubble_of_literature(arguments);
  std::string text = title(schedule) + "\n";
  text += fmt::format("step     {:.6g}, of which {:.6g} work\n", summary.makespan_s(),
                      summary.makespan_s() - bubble_s);
  text += fmt::format("bubble   {:.6g} ({:.2f} %){}\n", bubble_s, share(bubble_s, summary),
                      literature ? fmt::format("   closed form {:.6g}", *literature) : "");
  text += fmt::format("waiting  {:.6g} ({:.2f} %)\n", summary.waiting_s(),
                      share(summary.waiting_s(), summary));
  text += fmt::format("peak     {:.6g} micro-batches of activations\n\n", highest_peak(schedule));
  text += fmt::format("{:>5}  {:>10} {:>8}  {:>8}  {:>11}  {}\n", "rank", "bubble", "share", "peak",
                      "closed form", "slots");
  for (int rank = 0; rank < schedule.stages; ++rank) {
    const double rank_bubble_s = summary.bubble_s(rank);
    text += fmt::format("{:>5}  {:>10.6g} {:>6.2f} %  {:>8.6g}  {:>11}  {}\n", rank, rank_bubble_s,
                        share(rank_bubble_s, summary), peak_of(schedule, rank),
                        or_dash(peak_of_literature(arguments, rank)), slots_text(schedule, rank));
  }
  return text;
}

}  // namespace fourfold::plan_program
