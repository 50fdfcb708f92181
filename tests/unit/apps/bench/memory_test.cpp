// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "measured_rank.hpp"

#include <fourfold/base/error.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace fourfold::bench {
namespace {

TEST_CASE("sizes that do not fit are refused, and one that does is named", "[memory]") {
  Request request;
  request.operations = {exchange::Operation::all_to_all};
  request.sizes_bytes = {1024, 2048, 4096};
  // Two buffers on each of two ranks, and a tenth is left alone.
  CHECK_NOTHROW(require_memory(request, 2, 2, 20'000));
  CHECK_NOTHROW(require_memory(request, 2, 2, std::nullopt));
  try {
    require_memory(request, 2, 2, 16'384);
    FAIL("nothing was thrown");
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK(std::string(error.what()).find("use --max-bytes 2048, or fewer ranks") !=
          std::string::npos);
  }
  CHECK_THROWS_AS(require_memory(request, 2, 2, 0), UserError);
}

}  // namespace
}  // namespace fourfold::bench
