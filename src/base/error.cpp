// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <utility>

namespace fourfold {

ContractViolation::ContractViolation(const char* kind, const char* expression,
                                     std::source_location where)
    : Error(ExitCode::internal,
            format_message("{} does not hold: {} (a bug of fourfold at {}:{}, in {})", kind,
                           expression, where.file_name(), where.line(), where.function_name()),
            where) {}

namespace detail {
void contract_failed(const char* kind, const char* expression, std::source_location where) {
  throw ContractViolation(kind, expression, where);
}
}  // namespace detail

namespace {

/// Made at the start of the process: where memory is out there is none left to make it of.
Remedies of_program;

}  // namespace

void set_remedies(Remedies remedies) {
  of_program = std::move(remedies);
}

const Remedies& remedies() noexcept {
  return of_program;
}

std::string out_of_memory_message() {
  return "out of memory (this host has no more); " + of_program.host_memory;
}

std::string no_thread_message(const std::string& why) {
  return "no further thread can be started (" + why +
         "; the host's limit of processes is reached, or there is no memory for its stack); raise "
         "`ulimit -u` or `ulimit -v`, or run less on it at a time";
}

}  // namespace fourfold
