// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/program/help_page.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using fourfold::ExitCode;
using fourfold::UserError;

/// UCX, under MPI, copies the machine's name into 64 bytes while it is loaded, and ends a program
/// that has no room for the zero after it: before its main, so that only this program can say why.
void warn_of_long_host_name() {
  constexpr std::size_t longest = 63;
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0 && std::strlen(host.data()) > longest) {
    fourfold::log::write_stderr(fourfold::format_message(
        "fourfold: warning: the name of this machine has {} letters: UCX, which MPI uses, may end "
        "programs with \"buffer overflow detected\"; give the machine a name of at most {}\n",
        std::strlen(host.data()), longest));
  }
}

/// Replaces this process by the verb's program; comes back only by throwing.
[[noreturn]] void become(const std::string& verb, std::vector<std::string> arguments) {
  const auto program = fourfold::cli::program_of(verb);
  if (!program) {
    std::vector<std::string> known{"help"};
    for (const auto& candidate : fourfold::cli::installed_verbs()) {
      known.emplace_back(candidate.name);
    }
    const auto near = fourfold::nearest(verb, known);
    throw UserError(ExitCode::usage,
                    fourfold::format_message(
                        "there is no verb '{}'{}; 'fourfold help' lists the verbs", verb,
                        near ? fourfold::format_message(" (did you mean '{}'?)", *near) : ""));
  }
  std::string name = program->string();
  std::vector<char*> argv{name.data()};
  for (std::string& argument : arguments) {
    argv.push_back(argument.data());
  }
  argv.push_back(nullptr);
  warn_of_long_host_name();
  // Until the program has its own handlers UCX would swallow SIGHUP, to wait for a debugger.
  ::setenv("UCX_DEBUG_SIGNO", "0", 0);
  ::execv(name.c_str(), argv.data());
  throw fourfold::SystemError(
      ExitCode::config, fourfold::format_message("cannot run {} ({})", name, std::strerror(errno)));
}

ExitCode show_help() {
  fourfold::program::show_page(fourfold::cli::help(fourfold::cli::installed_verbs()));
  return ExitCode::finished;
}

ExitCode answer(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    fourfold::log::write_stderr(fourfold::cli::help(fourfold::cli::installed_verbs()));
    return ExitCode::usage;
  }
  const std::string& first = arguments.front();
  if (first == "--version") {
    become("version", {});
  }
  const bool wants_help = first == "help" || first == "--help" || first == "-h";
  if (wants_help && (arguments.size() == 1 || arguments[1] == "help")) {
    return show_help();
  }
  if (wants_help) {
    std::vector<std::string> words{"--help"};  // then what it is asked for: "ckpt export"
    words.insert(words.end(), arguments.begin() + 2, arguments.end());
    become(arguments[1], words);
  }
  if (first.starts_with('-')) {
    throw UserError(ExitCode::usage,
                    fourfold::format_message("unknown option '{}' (options of a verb come after "
                                             "it); 'fourfold help' shows what there is",
                                             first));
  }
  become(first, {arguments.begin() + 1, arguments.end()});
}

}  // namespace

int main(int argc, char** argv) {
  return fourfold::program::run("fourfold", [&] { return answer({argv + 1, argv + argc}); });
}
