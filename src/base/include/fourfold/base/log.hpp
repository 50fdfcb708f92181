// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fourfold::log {

enum class Level { debug, info, warning, error };

/// Where finished lines go (without newline). The library itself prints nothing until a program
/// installs a sink; the default sink drops everything below warning and writes the rest to stderr.
using Sink = std::function<void(Level, std::string_view line)>;

/// Writes to standard error as far as that can be written: what goes there never fails a run.
void write_stderr(std::string_view text) noexcept;

/// Installs a sink; returns the previous one. Thread-safe.
Sink set_sink(Sink sink);

/// This thread's rank, shown in front of lines of local() and used by info(): with the threads
/// transport each rank is a thread. Default 0 of 1.
void set_thread_rank(int rank, int size);
int thread_rank() noexcept;

/// For code that all ranks reach together: only rank 0 emits.
void info(std::string_view message);
void warning(std::string_view message);

/// For what concerns this rank alone: emitted wherever it is called, with "[rank r] " in front when
/// there are several.
void local(Level level, std::string_view message);

}  // namespace fourfold::log

// What programs say comes in part from files, from other programs and from hosts. All of it goes
// to standard error through log::write_stderr() and draw_stderr(), and to standard output through
// program/print.hpp, which let no character through that a terminal obeys.
namespace fourfold {

/// As printable() of base/text.hpp, for whole lines: line feeds and tabs stay. JSON and basic
/// strings of TOML keep their meaning: what is written anew can stand in their strings alone, where
/// `\u001b` is theirs, too.
std::string printable_lines(std::string_view text);

/// As printable_lines(), for one message: a line feed stays only where the next line begins with
/// two blanks, as the further lines of messages do. So no message can begin a line as another one
/// would.
std::string printable_message(std::string_view text);

namespace log {

/// Draws a line over the one that was drawn last, on a terminal; an empty one takes that away.
void draw_stderr(std::string_view line) noexcept;

}  // namespace log
}  // namespace fourfold
