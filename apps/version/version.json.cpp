// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "version.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::version {

std::string to_json(const BuildFacts& facts) {
  nlohmann::ordered_json document{
      {"version", facts.version},       {"commit", facts.commit},
      {"compiler", facts.compiler},     {"build_type", facts.build_type},
      {"sanitizers", facts.sanitizers}, {"contracts", facts.contracts},
      {"native", facts.native},         {"libraries", nlohmann::ordered_json::object()},
  };
  for (const LibraryFact& library : facts.libraries) {
    document["libraries"][std::string(library.name)] = library.version;
  }
  return json_text(document, 2);
}

}  // namespace fourfold::version
