// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// What runs before the constructors of libraries. Only a program can have this section, a library
/// cannot: so each program has this file, and a test that is a module has none.
#include <fourfold/program/run.hpp>

namespace fourfold::program {
namespace {

__attribute__((section(".preinit_array"),
               used)) void (*const ask_before_libraries)(int, char**, char**) = ask_about_hangup;

}  // namespace
}  // namespace fourfold::program
