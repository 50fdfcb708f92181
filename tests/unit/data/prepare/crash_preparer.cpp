// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The process that crash_prepare_test.cpp kills: prepares a text in bytes, a part of it held back.
/// Usage: crash_preparer PREFIX TEXT
#include <fourfold/base/error.hpp>
#include <fourfold/data/prepare.hpp>

#include <cstdio>

using namespace fourfold;

int main(int /*argc*/, char** argv) {
  try {
    data::prepare(*data::make_byte_tokenizer(),
                  {.inputs = {argv[2]},
                   .output_prefix = argv[1],
                   .document_separator = "|",
                   .validation_fraction = 0.5},
                  [](const data::PrepareProgress&) {});
    return 0;
  } catch (const UserError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return static_cast<int>(error.code());
  }
}
