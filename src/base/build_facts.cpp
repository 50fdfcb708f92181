// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "build_facts.inc"

#include "commit.inc"

#include <fourfold/base/build_facts.hpp>

namespace fourfold {
namespace {

constexpr LibraryFact libraries[] = {FOURFOLD_LIBRARY_FACTS};

constexpr BuildFacts facts{
    .version = FOURFOLD_VERSION,
    .commit = FOURFOLD_COMMIT,
    .compiler = FOURFOLD_COMPILER,
    .build_type = FOURFOLD_BUILD_TYPE,
    .sanitizers = FOURFOLD_SANITIZERS,
    .contracts = FOURFOLD_CONTRACTS != 0,
    .native = FOURFOLD_NATIVE_BUILD != 0,
    .libraries = libraries,
};

}  // namespace

const BuildFacts& build_facts() noexcept {
  return facts;
}

std::string build_name() {
  std::string name = std::string(facts.version) + " (" + std::string(facts.commit);
  name += facts.sanitizers.empty() ? "" : ", sanitized: " + std::string(facts.sanitizers);
  name += facts.contracts ? ", with contracts)" : ")";
  return name;
}

}  // namespace fourfold
