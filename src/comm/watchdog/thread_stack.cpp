// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "thread_stack.hpp"

#include <cxxabi.h>
#include <execinfo.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <memory>

namespace fourfold::comm {
namespace {

constexpr int most_frames = 48;
std::array<void*, most_frames> frames;
std::atomic<int> frame_count{0};
sem_t is_read;

int stack_signal() noexcept {
  return SIGRTMIN + 6;
}

extern "C" void read_own_stack(int /*signal*/) {
  const int saved = errno;
  frame_count = ::backtrace(frames.data(), most_frames);
  ::sem_post(&is_read);
  errno = saved;
}

/// "program(mangled+0x12) [0x34]" as "name+0x12", where it has a name.
std::string readable(const std::string& symbol) {
  const std::size_t begin = symbol.find('(');
  const std::size_t end = symbol.find('+', begin);
  if (begin == std::string::npos || end == std::string::npos || end == begin + 1) {
    return symbol;
  }
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol.substr(begin + 1, end - begin - 1).c_str(), nullptr, nullptr,
                          &status),
      &std::free);
  const std::string offset = symbol.substr(end, symbol.find(')', end) - end);
  return status == 0 ? name.get() + offset : symbol;
}

}  // namespace

ThreadStack::ThreadStack() : thread_(::pthread_self()), handler_stack_(std::size_t{128} << 10) {
  ::sem_init(&is_read, 0, 0);
  std::array<void*, 2> first;
  ::backtrace(first.data(), 2);  // the first call loads a library, which no handler may
  stack_t stack{};
  stack.ss_sp = handler_stack_.data();
  stack.ss_size = handler_stack_.size();
  ::sigaltstack(&stack, nullptr);
  struct sigaction action {};
  action.sa_handler = read_own_stack;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigaction(stack_signal(), &action, nullptr);
}

ThreadStack::~ThreadStack() {
  std::signal(stack_signal(), SIG_IGN);
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  ::sigaltstack(&none, nullptr);
}

std::vector<std::string> ThreadStack::read() const {
  timespec until{};
  ::clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 1;
  if (::pthread_kill(thread_, stack_signal()) != 0 || ::sem_timedwait(&is_read, &until) != 0) {
    return {};
  }
  const int count = frame_count;
  const std::unique_ptr<char*, decltype(&std::free)> symbols(
      ::backtrace_symbols(frames.data(), count), &std::free);
  constexpr int of_the_handler = 2;
  std::vector<std::string> lines;
  for (int frame = of_the_handler; symbols && frame < count; ++frame) {
    lines.push_back(readable(symbols.get()[frame]));
  }
  return lines;
}

}  // namespace fourfold::comm
