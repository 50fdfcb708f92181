// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/runfile/run_key.hpp>

#include <catch2/catch_test_macros.hpp>

#include <regex>
#include <string>

TEST_CASE("remedies name keys that there are", "[run_remedies]") {
  const fourfold::Remedies remedies = fourfold::runfile::run_remedies();
  const std::regex key("[a-z]+\\.[a-z_]+");
  int keys = 0;
  for (const std::string& text : {remedies.host_memory, remedies.device_memory}) {
    for (std::sregex_iterator found(text.begin(), text.end(), key), end; found != end; ++found) {
      CAPTURE(found->str());
      CHECK(fourfold::runfile::find_run_key(found->str()) != nullptr);
      ++keys;
    }
  }
  CHECK(keys >= 6);
}
