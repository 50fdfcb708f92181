// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/program/run.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <new>
#include <string>
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
    return {fmt::format("{}\n  {}", error.what(), place(error.where())), error.code()};
  } catch (const std::bad_alloc&) {
    return {"out of memory (this host has no more) run with a smaller model or micro-batch",
            ExitCode::config};
  } catch (const std::exception& error) {
    return {
        fmt::format("internal error: {}\n  please report it with the command line", error.what()),
        ExitCode::internal};
  }
}

}  // namespace

int run(std::string_view name, const std::function<ExitCode()>& body,
        const std::function<void(ExitCode)>& on_failure) {
  try {
    return static_cast<int>(body());
  } catch (...) {
    const auto [message, code] = explain();
    std::fflush(stdout);
    fmt::print(stderr, "{}: error: {}\n", name, message);
    std::fflush(stderr);
    if (on_failure) {
      on_failure(code);
    }
    return static_cast<int>(code);
  }
}

}  // namespace fourfold::program
