// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <mutex>
#include <new>
#include <utility>

namespace fourfold::log {
namespace {

std::mutex mutex;
Sink the_sink;  // NOLINT(cert-err58-cpp): its constructor does not throw

thread_local int this_rank = 0;
thread_local int ranks = 1;

void emit(Level level, std::string_view message) {
  const std::string line = printable_message(message);
  const std::scoped_lock lock(mutex);
  if (the_sink) {
    the_sink(level, line);
  } else if (level >= Level::warning) {
    write_stderr(line + "\n");
  }
}

void put(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);  // a full disk there is no reason to stop
  std::fflush(stderr);
}

}  // namespace

void write_stderr(std::string_view text) noexcept {
  try {
    put(printable_lines(text));
  } catch (const std::bad_alloc&) {  // which is perhaps what is to be told
    for (const char c : text) {
      std::fputc((c >= ' ' && c <= '~') || c == '\n' ? c : '?', stderr);
    }
  }
}

void draw_stderr(std::string_view line) noexcept {
  try {
    put(fmt::format("\r{}\x1b[K", printable(line)));
  } catch (const std::bad_alloc&) {  // the next one is drawn again
  }
}

Sink set_sink(Sink sink) {
  const std::scoped_lock lock(mutex);
  return std::exchange(the_sink, std::move(sink));
}

void set_thread_rank(int rank, int size) {
  this_rank = rank;
  ranks = size;
}
int thread_rank() noexcept {
  return this_rank;
}

void info(std::string_view message) {
  if (this_rank == 0) {
    emit(Level::info, message);
  }
}

void warning(std::string_view message) {
  if (this_rank == 0) {
    emit(Level::warning, message);
  }
}

void local(Level level, std::string_view message) {
  if (ranks > 1) {
    emit(level, fmt::format("[rank {}] {}", this_rank, message));
  } else {
    emit(level, message);
  }
}

}  // namespace fourfold::log
