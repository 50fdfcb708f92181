// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/telemetry/console.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace fourfold::telemetry {
namespace {

constexpr double redraw_every_s = 0.1;
constexpr std::size_t usual_columns = 80;

std::size_t columns_of(std::FILE* out) {
  winsize size{};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
    return usual_columns;
  }
  return size.ws_col;
}

}  // namespace

bool is_moving_terminal(std::FILE* out) {
  const std::string terminal = environment_text("TERM");
  return !terminal.empty() && terminal != "dumb" && ::isatty(::fileno(out)) != 0;
}

ProgressMode resolve_progress(ProgressMode mode, std::FILE* out) {
  if (mode != ProgressMode::automatic) {
    return mode;
  }
  return is_moving_terminal(out) ? ProgressMode::bar : ProgressMode::plain;
}

/// Lines that scroll and, below them, at most one line that is drawn over: plain ASCII, no colour.
class Console::Screen {
 public:
  explicit Screen(std::FILE* out) : out_(out) {}

  /// What cannot be written is not: a full disk where it goes is no reason to stop.
  void put(std::string_view text) { std::fwrite(text.data(), 1, text.size(), out_); }
  void print(std::string_view line, double unix_time_s) {
    const std::scoped_lock lock(mutex_);
    put(fmt::format("{}{} {}\n", status_.empty() ? "" : "\r\x1b[K", time_text(unix_time_s),
                    printable_lines(line)));
    draw();
  }
  /// Replaces the line below; an empty one takes it away. Not more often than the eye sees, unless
  /// `now`.
  void set_status(const std::string& status, double unix_time_s, bool now) {
    const std::scoped_lock lock(mutex_);
    if (!now && std::abs(unix_time_s - drawn_s_) < redraw_every_s) {
      return;
    }
    if (status.empty() && !status_.empty()) {
      put(fmt::format("\r\x1b[K"));
    }
    status_ = status;
    drawn_s_ = unix_time_s;
    draw();
  }
  /// Of a line that is drawn over; the last column would start the next.
  std::size_t columns() const { return columns_of(out_) - 1; }
  void finish() {
    const std::scoped_lock lock(mutex_);
    if (!status_.empty()) {
      put(fmt::format("\n"));
      std::fflush(out_);
    }
    status_.clear();
  }

 private:
  void draw() {
    if (!status_.empty()) {
      put(fmt::format("\r{}\x1b[K", status_.substr(0, columns())));
    }
    std::fflush(out_);
  }

  std::FILE* out_;
  std::mutex mutex_;
  std::string status_;
  double drawn_s_ = 0;
};

Console::Console(std::FILE* out, ProgressMode mode)
    : screen_(std::make_shared<Screen>(out)), mode_(resolve_progress(mode, out)) {}

Console::~Console() {
  screen_->finish();
}

void Console::start(const RunStart& run, double unix_time_s) {
  context_.steps = run.steps;
  context_.ranks = std::max(static_cast<int>(run.rank_hosts.size()), 1);
  context_.deadline_unix_s = run.deadline_unix_s;
  remaining_.start(run.first_step, run.steps, unix_time_s);
}

void Console::step(const StepRecord& record, double unix_time_s) {
  remaining_.step(record.step, record.step_s, unix_time_s);
  context_.now_s = unix_time_s;
  context_.remaining_s = remaining_.remaining_s();
  if (record.device_total_bytes > 0) {
    context_.device_used_bytes = record.device_used_bytes;
    context_.device_total_bytes = record.device_total_bytes;
  }
  if (mode_ == ProgressMode::plain) {
    screen_->print(step_line(record, context_), unix_time_s);
  } else if (mode_ == ProgressMode::bar) {
    screen_->set_status(bar_line(record, context_, screen_->columns()), unix_time_s,
                        record.step >= context_.steps);
  }
}

void Console::evaluation(const EvalRecord& record, double unix_time_s) {
  if (mode_ != ProgressMode::none) {
    screen_->print(
        format_message("step {} validation loss {:.4f} ({} tokens in {})", record.step, record.loss,
                       count_text(record.tokens), duration_text(record.eval_s)),
        unix_time_s);
  }
}

void Console::checkpoint(const CheckpointRecord& record, double unix_time_s) {
  context_.last_checkpoint_s = unix_time_s;
  if (mode_ != ProgressMode::none) {
    const bool in_background = record.committed_s > record.save_s;
    screen_->print(format_message("step {} checkpoint {} ({} in {}{})", record.step, record.path,
                                  bytes_text(record.bytes),
                                  duration_text(in_background ? record.committed_s : record.save_s),
                                  in_background ? format_message("; training stood still for {}",
                                                                 duration_text(record.save_s))
                                                : ""),
                   unix_time_s);
  }
}

void Console::end(const RunEnd& record, double unix_time_s) {
  screen_->finish();
  if (mode_ != ProgressMode::none) {
    // Why a run failed is what the program ends with: once is enough.
    const bool failed = record.code != ExitCode::finished && record.code != ExitCode::stopped_saved;
    screen_->print(failed ? format_message("step {} failed, exit code {}", record.step, record.code)
                          : format_message("step {} {}", record.step, record.reason),
                   unix_time_s);
  }
}

log::Sink Console::log_sink() const {
  const log::Level lowest = mode_ == ProgressMode::none ? log::Level::warning : log::Level::info;
  return [screen = screen_, lowest](log::Level level, std::string_view line) {
    if (level < lowest) {
      return;
    }
    const char* mark = level == log::Level::info      ? ""
                       : level == log::Level::warning ? "warning: "
                                                      : "error: ";
    screen->print(fmt::format("{}{}", mark, line), unix_time_s());
  };
}

}  // namespace fourfold::telemetry
