// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The linker's --wrap takes calls of a symbol F to __wrap_F, and those of __real_F to F.
#define REAL_AND_WRAPPED(name, symbol, ...)            \
  void real_##name(__VA_ARGS__) asm("__real_" symbol); \
  void name(__VA_ARGS__) asm("__wrap_" symbol)
