// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// crash_repairer FOLDER: makes index and manifest of a step folder again, as `fourfold ckpt
/// repair-index` does. Ends with the exit code of what went wrong. crash_repair_test runs it under
/// the shim.
#include <fourfold/base/error.hpp>
#include <fourfold/io/index_repair.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 64;
  }
  try {
    fourfold::io::repair_index(argv[1]);
  } catch (const fourfold::Error& error) {
    std::fputs(error.what(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
