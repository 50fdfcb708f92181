// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "schedule_places.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/schedule/schedule.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace fourfold::schedule {
namespace {

constexpr std::size_t most_bytes = std::size_t{64} << 20;
constexpr int most_micro_batches = 1 << 20;
constexpr int most_chunks = 1 << 10;
constexpr std::string_view blank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blank);
  return begin == std::string_view::npos
             ? std::string_view{}
             : text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// A number below `limit` at the front of `text`, which it is taken from.
std::optional<int> take_number(std::string_view& text, int limit) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || value < 0 || value >= limit || text.front() == '-') {
    return std::nullopt;
  }
  text.remove_prefix(end - text.data());
  return value;
}

/// F3 or F3.1.
std::optional<Action> parse_cell(std::string_view cell) {
  constexpr std::string_view letters = "FBIW";
  constexpr std::array kinds{ActionKind::forward, ActionKind::backward, ActionKind::backward_input,
                             ActionKind::backward_weight};
  const std::size_t letter = letters.find(cell.front());
  if (letter == std::string_view::npos) {
    return std::nullopt;
  }
  Action action{kinds[letter], 0, 0, 0};
  cell.remove_prefix(1);
  const auto micro_batch = cell.empty() ? std::nullopt : take_number(cell, most_micro_batches);
  if (!micro_batch) {
    return std::nullopt;
  }
  action.micro_batch = *micro_batch;
  if (cell.starts_with('.') && cell.size() > 1) {
    cell.remove_prefix(1);
    const auto chunk = take_number(cell, most_chunks);
    if (!chunk) {
      return std::nullopt;
    }
    action.chunk = *chunk;
  }
  return cell.empty() ? std::optional(action) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(std::string_view file_name) : file_name_(file_name) {
    schedule_.name = file_name;
    schedule_.stages = 0;
    schedule_.micro_batches = 0;
    schedule_.chunks = 0;
  }

  void read(std::string_view text) {
    if (text.size() > most_bytes) {
      refuse(format_message("has {} bytes (more than {} cannot be a schedule); check the file name",
                            text.size(), most_bytes));
    }
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    text.remove_prefix(text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0);
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  const Schedule& schedule() const noexcept { return schedule_; }
  const Places& places() const noexcept { return places_; }

  /// The text is about this run, and the tables of the checker stay as small as the text.
  void check_sizes(int stages, int micro_batches) const {
    if (schedule_.micro_batches == 0) {
      refuse("has no actions (every rank has a line); write one, as `fourfold plan --csv` does");
    }
    if (stages != 0 && stages != schedule_.stages) {
      refuse(
          format_message("has lines for {} ranks, but mesh.pp = {} (one line per stage); set "
                         "mesh.pp to {} or write {} lines",
                         schedule_.stages, stages, schedule_.stages, stages));
    }
    if (micro_batches != 0 && micro_batches != schedule_.micro_batches) {
      refuse(format_message(
          "is for {} micro-batches (its last is that of {}), but a step has {} "
          "(train.global_batch / (mesh.dp * train.micro_batch)); correct the cell, or "
          "change train.global_batch so that it has {}",
          schedule_.micro_batches, highest_micro_batch_, micro_batches, schedule_.micro_batches));
    }
    if (schedule_.placement == Placement::vee && schedule_.chunks != 2) {
      refuse(format_message(
          "has {} chunk{} (the last is that of {}), but its placement is vee (down the "
          "ranks and back up); use chunks 0 and 1, or write '# placement: loop'",
          schedule_.chunks, schedule_.chunks == 1 ? "" : "s", highest_chunk_));
    }
    for (int rank = 0; rank < schedule_.stages; ++rank) {
      const std::int64_t least = std::int64_t{2} * schedule_.chunks * schedule_.micro_batches;
      if (2 * std::ssize(schedule_.ranks[rank]) < least) {
        refuse(format_message(
            "line {} (rank {}) has {} actions (forward and backward of {} micro-batches in {} "
            "chunk{} are {}; the last micro-batch is that of {}, the last chunk that of {}); "
            "complete it, or correct that cell",
            places_.lines[rank], rank, schedule_.ranks[rank].size(), schedule_.micro_batches,
            schedule_.chunks, schedule_.chunks == 1 ? "" : "s", least, highest_micro_batch_,
            highest_chunk_));
      }
      check_no_micro_batch_missing(rank);
      check_no_chunk_missing(rank);
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(ExitCode::config, format_message("mesh.schedule: {} {}", file_name_, what));
  }

 private:
  /// A number that is mistyped is too large for the rest, or leaves a gap among the others.
  void check_no_micro_batch_missing(int rank) const {
    std::vector<bool> seen(schedule_.micro_batches);
    for (const Action& action : schedule_.ranks[rank]) {
      seen[action.micro_batch] = true;
    }
    const auto missing = std::ranges::find(seen, false);
    if (missing != seen.end()) {
      refuse(format_message(
          "line {} (rank {}) does nothing with micro-batch {} (the last micro-batch is "
          "that of {}); complete it, or correct that cell",
          places_.lines[rank], rank, missing - seen.begin(), highest_micro_batch_));
    }
  }

  void check_no_chunk_missing(int rank) const {
    for (int chunk = 0; chunk < schedule_.chunks; ++chunk) {
      if (std::ranges::find(schedule_.ranks[rank], chunk, &Action::chunk) ==
          schedule_.ranks[rank].end()) {
        refuse(format_message(
            "line {} (rank {}) does nothing with chunk {} (the last chunk is that of {}); "
            "complete it, or correct that cell",
            places_.lines[rank], rank, chunk, highest_chunk_));
      }
    }
  }

  void read_line(std::string_view line) {
    const std::size_t comment = std::min(line.find('#'), line.size());
    const bool has_comment = comment < line.size();
    read_comment(trimmed(line.substr(comment).substr(has_comment ? 1 : 0)), comment);
    line = line.substr(0, comment);
    if (trimmed(line).empty()) {
      const bool after_ranks = !has_comment && !schedule_.ranks.empty();
      first_empty_ = first_empty_ == 0 && after_ranks ? line_ : first_empty_;
      return;
    }
    if (first_empty_ != 0) {
      refuse(
          format_message("line {} is empty (from the first rank to the last every line is one); "
                         "remove it, or write what this rank does",
                         first_empty_));
    }
    ++schedule_.stages;
    std::vector<Action>& actions = schedule_.ranks.emplace_back();
    places_.lines.push_back(line_);
    places_.columns.emplace_back();
    std::size_t begin = 0;
    while (begin <= line.size()) {
      const std::size_t end = std::min(line.find(',', begin), line.size());
      const std::string_view cell = trimmed(line.substr(begin, end - begin));
      if (!cell.empty()) {
        const std::size_t offset = cell.data() - line.data();
        actions.push_back(read_cell(cell, offset));
        places_.columns.back().push_back(offset + 1);
      }
      begin = end + 1;
    }
  }

  Action read_cell(std::string_view cell, std::size_t offset) {
    const auto action = parse_cell(cell);
    if (!action) {
      refuse_at(offset,
                format_message("'{}' is no action (they are F, B, I or W with the number of a "
                               "micro-batch and, after a dot, of a chunk); write F3 or F3.1",
                               printable(cell.substr(0, 20))));
    }
    const auto cell_text = [&] {
      return fmt::format("{} at line {}, column {}", cell, line_, offset + 1);
    };
    if (action->micro_batch >= schedule_.micro_batches) {
      schedule_.micro_batches = action->micro_batch + 1;
      highest_micro_batch_ = cell_text();
    }
    if (action->chunk >= schedule_.chunks) {
      schedule_.chunks = action->chunk + 1;
      highest_chunk_ = cell_text();
    }
    return *action;
  }

  void read_comment(std::string_view comment, std::size_t offset) {
    constexpr std::string_view key = "placement:";
    if (!comment.starts_with(key)) {
      return;
    }
    const std::string_view value = trimmed(comment.substr(key.size()));
    if (value == name(Placement::vee)) {
      schedule_.placement = Placement::vee;
    } else if (value == name(Placement::loop)) {
      schedule_.placement = Placement::loop;
    } else {
      refuse_at(offset,
                format_message("placement '{}' is not known (it says where the chunks lie); "
                               "write loop or vee",
                               printable(value.substr(0, 20))));
    }
  }

  [[noreturn]] void refuse_at(std::size_t offset, const std::string& what) const {
    refuse(format_message("line {}, column {}: {}", line_, offset + 1, what));
  }

  std::string_view file_name_;
  int line_ = 0;
  int first_empty_ = 0;  ///< line without a rank after the first rank's; 0: none
  Schedule schedule_;
  Places places_;
  /// "F7 at line 1, column 4": the first cell that names the last micro-batch, or the last chunk.
  /// Where the file's size looks wrong, a typing error in it may be what is wrong.
  std::string highest_micro_batch_;
  std::string highest_chunk_;
};

}  // namespace

std::optional<std::string> schedule_file_text(const std::string& path) {
  std::string text;
  return read_regular_file(path, Links::follow, most_bytes, text) ? std::nullopt
                                                                  : std::optional(std::move(text));
}

Schedule read_schedule_csv(std::string_view text, const std::string& file_name, int stages,
                           int micro_batches) {
  Reader reader(file_name);
  reader.read(text);
  reader.check_sizes(stages, micro_batches);
  if (const Defect defect = check_compute(reader.schedule(), reader.places())) {
    reader.refuse(format_message("is wrong: {}", *defect));
  }
  Schedule schedule = lowered(reader.schedule());
  if (const Defect defect = check_all(schedule, reader.places())) {
    reader.refuse(format_message("cannot run: {}", *defect));
  }
  return schedule;
}

std::string schedule_csv(const Schedule& schedule) {
  std::string text = fmt::format(
      "{}{}\n"
      "# {}: {} stages, {} micro-batches\n"
      "# placement: {}\n",
      schedule_csv_mark,
      schedule.chunks == 1 ? "F3: micro-batch 3" : "F3.1: micro-batch 3, chunk 1", schedule.name,
      schedule.stages, schedule.micro_batches, name(schedule.placement));
  for (const std::vector<Action>& actions : without_transfers(schedule).ranks) {
    bool first = true;
    for (const Action& action : actions) {
      text += (first ? "" : ",") + str(action, schedule.chunks);
      first = false;
    }
    text += '\n';
  }
  return text;
}

}  // namespace fourfold::schedule
