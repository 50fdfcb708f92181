// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/unique_handle.hpp>
#include <fourfold/program/command_output.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

extern char** environ;

namespace fourfold::program {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

struct PipeTraits {
  using native_type = int;
  static native_type null() noexcept { return -1; }
  static void close(native_type end) noexcept { ::close(end); }
};
using PipeEnd = UniqueHandle<PipeTraits>;

/// What a program writes to, and the end that is read here, without blocking.
struct Pipe {
  PipeEnd read;
  PipeEnd write;

  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe");
    }
    read.reset(ends[0]);
    write.reset(ends[1]);
    ::fcntl(read.get(), F_SETFL, O_NONBLOCK);
  }
};

/// As programs expect to be started: a process of ours may block or ignore signals.
/// @return the error number, 0: it runs
int spawn(const std::vector<std::string>& command, int out, int err, pid_t& process) {
  std::vector<char*> words;
  for (const std::string& word : command) {
    words.push_back(const_cast<char*>(word.c_str()));  // posix_spawn does not write to them
  }
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  sigset_t all;
  sigset_t none;
  ::sigfillset(&all);
  ::sigemptyset(&none);
  posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  const int error =
      ::posix_spawnp(&process, words[0], &actions, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// Takes what has come, up to `most` bytes in all. @return false: no more will come
bool take(const Pipe& pipe, std::string& text, std::size_t most) {
  std::array<char, 65536> piece;
  while (text.size() <= most) {
    const ssize_t count = ::read(pipe.read.get(), piece.data(), piece.size());
    if (count > 0) {
      text.append(piece.data(), count);
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

/// A program that runs, its streams and how long it may.
class Running {
 public:
  Running(pid_t process, Pipe& out, Pipe& err, const CommandLimits& limits)
      : process_(process), out_(out), err_(err), limits_(limits) {}

  CommandOutput until_end() {
    const auto end = Clock::now() + limits_.time;
    for (bool is_over = false; !is_over;) {
      is_over = has_ended();
      if (output_.text.size() > limits_.bytes || output_.errors.size() > limits_.bytes) {
        output_.cut = fmt::format("has said more than {} bytes and was ended", limits_.bytes);
      } else if (!is_over && Clock::now() > end) {
        output_.cut = fmt::format("has not answered for {:g} s and was ended",
                                  std::chrono::duration<double>(limits_.time).count());
      }
      if (!is_over && !output_.cut.empty()) {
        stop();
        is_over = true;
      }
    }
    return std::move(output_);
  }

 private:
  /// Reads what comes, and looks whether the program is over. What it leaves running in the
  /// background may keep the streams: that is not waited for.
  bool has_ended() {
    const int pause_ms = out_comes_ || err_comes_ ? 50 : 2;  // without streams: about to end
    std::array<pollfd, 2> ready{
        {{.fd = out_comes_ ? out_.read.get() : -1, .events = POLLIN, .revents = 0},
         {.fd = err_comes_ ? err_.read.get() : -1, .events = POLLIN, .revents = 0}}};
    ::poll(ready.data(), ready.size(), pause_ms);
    int status = 0;
    const pid_t ended = ::waitpid(process_, &status, WNOHANG);
    out_comes_ = out_comes_ && take(out_, output_.text, limits_.bytes);
    err_comes_ = err_comes_ && take(err_, output_.errors, limits_.bytes);
    if (ended == process_) {
      output_.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    return ended == process_;
  }

  /// Gives up on one that waits in the kernel, for a disk or the like.
  void stop() {
    output_.code = -1;
    for (const auto& [signal, time] : {std::pair(SIGTERM, 1s), std::pair(SIGKILL, 2s)}) {
      ::kill(process_, signal);
      const auto end = Clock::now() + time;
      while (Clock::now() < end) {
        if (::waitpid(process_, nullptr, WNOHANG) == process_) {
          return;
        }
        ::poll(nullptr, 0, 5);
      }
    }
  }

  pid_t process_;
  Pipe& out_;
  Pipe& err_;
  CommandLimits limits_;
  bool out_comes_ = true;
  bool err_comes_ = true;
  CommandOutput output_;
};

std::string last_line(const std::string& text) {
  const std::string trimmed = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  return trimmed.substr(trimmed.find_last_of('\n') + 1);  // npos + 1 is 0
}

}  // namespace

std::string CommandOutput::failure() const {
  if (!cut.empty()) {
    return cut;
  }
  const std::string line = last_line(errors).empty() ? last_line(text) : last_line(errors);
  const std::string ended =
      code < 0 ? "was ended by a signal" : fmt::format("ended with code {}", code);
  return line.empty() ? ended : ended + ": " + line;
}

std::optional<CommandOutput> output_of(const std::vector<std::string>& command,
                                       const CommandLimits& limits) {
  const auto cannot_run = [&](int error) {
    return CommandOutput{-1, "", "",
                         fmt::format("cannot be run ({})", std::generic_category().message(error))};
  };
  try {
    Pipe out;
    Pipe err;
    pid_t process = 0;
    if (const int error = spawn(command, out.write.get(), err.write.get(), process); error != 0) {
      return error == ENOENT ? std::nullopt : std::optional(cannot_run(error));
    }
    out.write.reset();
    err.write.reset();
    return Running(process, out, err, limits).until_end();
  } catch (const std::system_error& error) {  // no file descriptors are left
    return cannot_run(error.code().value());
  }
}

std::optional<CommandOutput> ask_slurm(const std::vector<std::string>& command,
                                       std::chrono::milliseconds time) {
  std::vector<std::string> names;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    if (text.starts_with("SQUEUE_") || text.starts_with("SINFO_") || text.starts_with("SACCT_")) {
      names.emplace_back(text.substr(0, text.find('=')));
    }
  }
  for (const std::string& name : names) {
    ::unsetenv(name.c_str());
  }
  return output_of(command, {.time = time});
}

}  // namespace fourfold::program
