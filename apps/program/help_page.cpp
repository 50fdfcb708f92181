// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/program/help_page.hpp>
#include <fourfold/program/print.hpp>

#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <vector>

namespace fourfold::program {
namespace {

constexpr std::size_t widest = 100;          // longer lines are hard to read
constexpr std::size_t narrowest = 20;        // of a terminal, and of what is left of a hanging line
constexpr std::size_t last_column_two = 44;  // further right two spaces are no columns any more

/// Where the text of a line begins under which it goes on: its second column, or its first letter.
std::size_t text_column(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(' ');
  if (begin == std::string_view::npos) {
    return 0;
  }
  const std::size_t gap = line.find("  ", begin);
  const std::size_t text = gap == std::string_view::npos ? gap : line.find_first_not_of(' ', gap);
  return text <= last_column_two ? text : begin;
}

std::string_view first_word(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
  return line.substr(begin, line.find(' ', begin) - begin);
}

/// One sentence of the text: its lines as they were, and as one.
struct Paragraph {
  std::vector<std::string_view> lines;
  std::size_t column = 0;

  bool goes_on_with(std::string_view line, std::size_t broken_at) const {
    const std::size_t begin = line.find_first_not_of(' ');
    return begin != std::string_view::npos && begin == column && text_column(line) == begin &&
           lines.back().size() <= widest &&  // a longer one nobody has broken
           lines.back().size() + 1 + first_word(line).size() > broken_at;
  }
};

std::vector<Paragraph> paragraphs_of(std::string_view text, std::size_t broken_at) {
  std::vector<Paragraph> paragraphs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!paragraphs.empty() && paragraphs.back().goes_on_with(line, broken_at)) {
      paragraphs.back().lines.push_back(line);
    } else {
      paragraphs.push_back({{line}, text_column(line)});
    }
  }
  return paragraphs;
}

/// A paragraph in lines of at most `columns`.
void append_broken(std::string& out, const Paragraph& paragraph, std::size_t columns) {
  // A narrow terminal has no room for a far column.
  const std::size_t column = paragraph.column + narrowest <= columns
                                 ? paragraph.column
                                 : std::min(columns / 4, paragraph.column);
  std::string line(paragraph.lines.front().substr(0, paragraph.column));
  bool is_empty = true;  // so far the line has nothing but what stands before the column
  if (line.size() + first_word(paragraph.lines.front().substr(paragraph.column)).size() > columns &&
      line.find_first_not_of(' ') != std::string::npos) {
    out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    line.assign(column, ' ');
  }
  for (std::string_view part : paragraph.lines) {
    part.remove_prefix(std::min(paragraph.column, part.size()));
    for (std::size_t at = 0; at < part.size();) {
      // Spaces inside of a line are its author's: columns of a table, the gap before a comment.
      const std::size_t word = std::min(part.find_first_not_of(' ', at), part.size());
      const std::size_t end = std::min(part.find(' ', word), part.size());
      const std::size_t spaces = is_empty ? 0 : std::max<std::size_t>(word - at, 1);
      if (!is_empty && line.size() + spaces + (end - word) > columns) {
        out += line + "\n";
        line.assign(column, ' ');
      } else {
        line.append(spaces, ' ');
      }
      line += part.substr(word, end - word);
      is_empty = false;
      at = end;
    }
  }
  out += line + "\n";
}

std::optional<winsize> terminal() {
  winsize size{};
  const bool is_known = ::isatty(STDOUT_FILENO) != 0 &&
                        ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? std::optional(size) : std::nullopt;
}

/// Of the page: the terminal's, at most `widest`. Elsewhere $COLUMNS, where somebody has set it.
std::size_t columns_of(const std::optional<winsize>& size) {
  if (size) {
    return std::min<std::size_t>(size->ws_col, widest);
  }
  const char* const told = std::getenv("COLUMNS");
  const long columns = told != nullptr ? std::strtol(told, nullptr, 10) : 0;
  return columns > 0 ? static_cast<std::size_t>(columns) : widest;
}

/// The words of $PAGER; none where the reader wants none.
std::vector<std::string> pager() {
  const char* const wanted = std::getenv("PAGER");
  std::istringstream in(wanted != nullptr ? wanted : "less -FRX");
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    words.push_back(word);
  }
  return words == std::vector<std::string>{"cat"} ? std::vector<std::string>{} : words;
}

/// Lets a program show the text. Whether it could be started; it may have ended before the last
/// line, which is its reader's wish.
bool show_by(std::vector<std::string> words, std::string_view text) {
  int ends[2] = {};
  if (::pipe(ends) != 0) {
    return false;
  }
  constexpr int cannot_start = 127;
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> argv;
    for (std::string& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execvp(argv.front(), argv.data());
    ::_exit(cannot_start);
  }
  ::close(ends[0]);
  const auto pipe_signal = std::signal(SIGPIPE, SIG_IGN);
  while (child > 0 && !text.empty()) {
    const ssize_t written = ::write(ends[1], text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      break;
    }
    text.remove_prefix(std::max<ssize_t>(written, 0));
  }
  ::close(ends[1]);
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  std::signal(SIGPIPE, pipe_signal);
  return child > 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == cannot_start);
}

}  // namespace

std::string fit_lines(std::string_view text, std::size_t columns, std::size_t broken_at) {
  columns = std::max(columns, narrowest);
  std::string out;
  for (const Paragraph& paragraph : paragraphs_of(text, broken_at)) {
    const bool fits = std::ranges::all_of(
        paragraph.lines, [&](std::string_view line) { return line.size() <= columns; });
    if (fits) {
      for (const std::string_view line : paragraph.lines) {
        out += line;
        out += '\n';
      }
    } else {
      append_broken(out, paragraph, columns);
    }
  }
  return out;
}

void show_page(std::string_view text) {
  const auto size = terminal();
  const std::string page = printable_lines(fit_lines(text, columns_of(size)));
  const bool is_long = size && std::ranges::count(page, '\n') >= size->ws_row;
  if (is_long && !pager().empty() && show_by(pager(), page)) {
    return;
  }
  print_text(page);
}

}  // namespace fourfold::program
