// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/fatal_exit.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

namespace fourfold::program {
namespace {

std::string place(const std::source_location& where) {
  return fmt::format("noticed at {}:{}", where.file_name(), where.line());
}

/// The message and the code for the exception in flight.
std::pair<std::string, ExitCode> explain() {
  try {
    throw;
  } catch (const UserError& error) {
    return {error.what(), error.code()};
  } catch (const Error& error) {
    return {format_message("{}\n  {}", MadeLines{error.what()}, place(error.where())),
            error.code()};
  } catch (const std::bad_alloc&) {
    return {out_of_memory_message(), ExitCode::config};
  } catch (const std::filesystem::filesystem_error& error) {
    return {
        format_message("a file or folder cannot be reached ({}); check its path and permissions",
                       error.what()),
        ExitCode::config};
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return {no_thread_message(error.what()), ExitCode::config};
    }
    return {format_message("the output cannot be written ({})", error.what()),
            ExitCode::cannot_write};
  } catch (const std::exception& error) {
    return {format_message("internal error: {}\n  " FOURFOLD_REPORT_IT " with the command line",
                           error.what()),
            ExitCode::internal};
  }
}

/// Long enough for the end of all ranks to reach one that failed for the same reason as a lower
/// rank; short enough for a rank that failed alone.
std::chrono::milliseconds moment(int rank) {
  return std::chrono::milliseconds(rank == 0 ? 0 : 1500 + 250 * std::min(rank, 18));
}

void report(std::string_view name, const std::string& message) {
  const RankIdentity& self = rank_identity();
  const MadeLines shown{printable_message(message)};
  std::fflush(stdout);
  if (self.end_all_ranks != nullptr) {
    log::write_stderr(format_message("{}: [rank {} of {} on {}] error: {}\n", name, self.rank,
                                     self.size, self.host, shown));
  } else if (self.size == 1 || self.rank == 0) {
    log::write_stderr(format_message("{}: error: {}\n", name, shown));
  }
  std::fflush(stderr);
}

void call(const OnFailure& on_failure, std::string_view name, ExitCode code,
          const std::string& message) {
  if (!on_failure) {
    return;
  }
  try {
    on_failure(code, message);
  } catch (const std::exception& second) {  // the first error is the one to report
    log::write_stderr(
        format_message("{}: warning: {}\n", name, MadeLines{printable_message(second.what())}));
  }
}

/// For signal handlers and where memory is short.
[[noreturn]] void end_at_once(ExitCode code, std::string_view message) noexcept {
  std::ignore = ::write(STDERR_FILENO, message.data(), message.size());
  ::_exit(static_cast<int>(code));
}

/// Reading a mapped file whose disk has failed, or that somebody has cut short, is a signal: there
/// is no call that could return an error.
extern "C" void end_without_mapped_file(int /*signal*/) {
  end_at_once(
      ExitCode::node_fault,
      "fourfold: error: a file that is mapped into memory (tokens, or offloaded state) cannot be "
      "read: its disk has failed, or somebody has cut it short; the last checkpoint is good\n");
}

std::terminate_handler before_us = nullptr;

/// An exception that nobody can catch: thrown on a thread of a library, or where something is put
/// in order after another. Lack of memory comes at any place; all else is a bug.
[[noreturn]] void end_uncaught() noexcept {
  try {
    if (const auto thrown = std::current_exception()) {
      std::rethrow_exception(thrown);
    }
  } catch (const std::bad_alloc&) {
    end_at_once(ExitCode::config,
                "fourfold: error: out of memory (this host has no more, or `ulimit -v` allows no "
                "more); give it more, or ask for less; what was saved before is whole\n");
  } catch (...) {
    before_us();  // says what it was
  }
  before_us();
  std::abort();
}

}  // namespace

int run(std::string_view name, const std::function<ExitCode()>& body, const OnFailure& on_failure) {
  // A file size limit shows as an error of write(2) then, which has a message.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGBUS, end_without_mapped_file);
  if (const auto now = std::get_terminate(); now != end_uncaught) {
    before_us = now;
    std::set_terminate(end_uncaught);
  }
  clean_up_on_signals(hangup_was_ignored());
  ExitCode code{};
  try {
    const OnSuddenEnd on_fatal_exit([&](ExitCode fatal, const std::string& why) {
      call(on_failure, name, fatal, why);
      report(name, why);
    });
    code = body();
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
      throw UserError(ExitCode::cannot_write,
                      "standard output cannot be written (a full disk, or nobody reads it)");
    }
  } catch (...) {
    std::string message;
    std::tie(message, code) = explain();
    const RankIdentity& self = rank_identity();
    if (self.end_all_ranks != nullptr) {
      std::this_thread::sleep_for(moment(self.rank));
    }
    call(on_failure, name, code, message);
    report(name, message);
    if (self.end_all_ranks != nullptr) {
      self.end_all_ranks(code);
    }
  }
  return static_cast<int>(code);
}

void enable_verbose_log() {
  log::set_sink(
      [](log::Level, std::string_view line) { log::write_stderr(std::string(line) + "\n"); });
}

}  // namespace fourfold::program
