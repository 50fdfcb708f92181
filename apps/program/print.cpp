// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/program/print.hpp>

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

namespace fourfold::program {
namespace {

void put(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) {
    throw std::system_error(errno, std::generic_category(), "standard output");
  }
}

}  // namespace

void print_text(std::string_view lines) {
  put(printable_lines(lines));
}

void print_data(std::string_view bytes) {
  if (::isatty(STDOUT_FILENO) != 0) {
    print_text(bytes);
  } else {
    put(bytes);
  }
}

}  // namespace fourfold::program
