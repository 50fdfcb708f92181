// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// main() of test programs in a build of shared libraries: the tests of a program are a module, and
// the program is a link to this one, which is called by its name. So Catch2, which is twice as
// large as most of them, is in a bundle once.
#include <catch2/catch_session.hpp>
#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <string>

int main(int argc, char** argv) {
  const std::string module = std::filesystem::path(argv[0]).filename().string() + ".so";
  // Beside this program, or where a bundle has its libraries. Its tests make themselves known.
  if (::dlopen(module.c_str(), RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    std::fprintf(stderr, "no tests (%s)\n", ::dlerror());  // NOLINT(concurrency-mt-unsafe)
    return 78;
  }
  return Catch::Session().run(argc, argv);
}
