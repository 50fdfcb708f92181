// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/message.hpp>

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

}  // namespace fourfold
