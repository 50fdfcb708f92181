// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Contracts catch our own bugs, never the user's mistakes (those are UserError and always on).
/// They are compiled in when FOURFOLD_CONTRACTS is 1 (preset host-debug, the sanitizer presets) and
/// vanish otherwise, so their expressions must have no side effects.
#pragma once

#include <fourfold/base/error.hpp>

#include <source_location>

namespace fourfold {

/// A precondition, postcondition or invariant of ours does not hold.
class ContractViolation : public Error {
 public:
  ContractViolation(const char* kind, const char* expression,
                    std::source_location where = std::source_location::current());
};

namespace detail {
[[noreturn]] void contract_failed(const char* kind, const char* expression,
                                  std::source_location where = std::source_location::current());
}  // namespace detail
}  // namespace fourfold

#ifndef FOURFOLD_CONTRACTS
#define FOURFOLD_CONTRACTS 0
#endif

#if FOURFOLD_CONTRACTS
#define FOURFOLD_CHECK_CONTRACT(kind, expression) \
  ((expression) ? static_cast<void>(0) : ::fourfold::detail::contract_failed(kind, #expression))
#else
#define FOURFOLD_CHECK_CONTRACT(kind, expression) static_cast<void>(sizeof(!(expression)))
#endif

/// Precondition at the head of a function.
#define FOURFOLD_EXPECT(expression) FOURFOLD_CHECK_CONTRACT("precondition", expression)
/// Postcondition before a return.
#define FOURFOLD_ENSURE(expression) FOURFOLD_CHECK_CONTRACT("postcondition", expression)
/// Invariant in the middle.
#define FOURFOLD_ASSERT(expression) FOURFOLD_CHECK_CONTRACT("invariant", expression)
