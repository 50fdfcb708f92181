// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "arguments.hpp"

#include <fourfold/base/error.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

namespace fourfold::bench {
namespace {

Arguments with_mesh(const std::string& mesh, const std::string& axis = "world") {
  Arguments arguments;
  arguments.mesh = mesh;
  arguments.axis = axis;
  return arguments;
}

/// The code and the words of the refusal; a success is none.
std::pair<ExitCode, std::string> refusal(const Arguments& arguments, int ranks) {
  try {
    request_of(arguments, ranks);
  } catch (const UserError& error) {
    return {error.code(), error.what()};
  }
  return {ExitCode::finished, ""};
}

TEST_CASE("sizes rise by the factor from the first to the last that fits", "[arguments]") {
  Arguments arguments;
  arguments.min_bytes = 8;
  arguments.max_bytes = 3000;
  arguments.factor = 8;
  CHECK(request_of(arguments, 2).sizes_bytes == std::vector<std::int64_t>{8, 64, 512});
  arguments.min_bytes = 3000;
  CHECK(request_of(arguments, 2).sizes_bytes == std::vector<std::int64_t>{3000});
}

TEST_CASE("without options everything is measured on all ranks", "[arguments]") {
  const Request request = request_of(Arguments(), 6);
  CHECK(request.operations.size() == exchange::all_operations.size());
  CHECK(request.mesh == comm::MeshShape{.pp = 1, .dp = 6, .cp = 1, .tp = 1});
  CHECK_FALSE(request.axis.has_value());
  CHECK(request.sizes_bytes.front() == 8);
  CHECK(request.sizes_bytes.back() == std::int64_t{1} << 30);
}

TEST_CASE("a mesh is degrees by name", "[arguments]") {
  CHECK(request_of(with_mesh("tp=2,pp=3,dp=2"), 12).mesh ==
        comm::MeshShape{.pp = 3, .dp = 2, .cp = 1, .tp = 2});
  CHECK(request_of(with_mesh("cp=2,dp=auto", "cp"), 8).mesh ==
        comm::MeshShape{.pp = 1, .dp = 4, .cp = 2, .tp = 1});
  CHECK(request_of(with_mesh("dp=8", "dp"), 8).axis == comm::Axis::dp);
}

TEST_CASE("meshes that mean nothing are refused with the item that is wrong", "[arguments]") {
  for (const char* mesh : {"", "dp", "dp=", "dp=2,", ",dp=2", "dp=0", "dp=-2", "dp=2x", "xp=2",
                           "tp=auto", "dp=2;tp=2", "dp=99999999999"}) {
    const std::string text = mesh;
    CAPTURE(text);
    if (!text.empty()) {  // an empty one is none
      CHECK(refusal(with_mesh(text), 2).first == ExitCode::usage);
    }
  }
  const auto [code, words] = refusal(with_mesh("dp=2,tp=1,dp=1"), 2);
  CHECK(code == ExitCode::usage);
  CHECK(words.find("names dp twice") != std::string::npos);
}

TEST_CASE("what leaves nothing to measure is refused", "[arguments]") {
  CHECK(refusal(Arguments(), 1).first == ExitCode::config);
  CHECK(refusal(with_mesh("dp=2", "tp"), 2).first == ExitCode::config);
  CHECK(refusal(with_mesh("dp=2,tp=2"), 3).first == ExitCode::config);
  Arguments arguments;
  arguments.min_bytes = 1024;
  arguments.max_bytes = 1023;
  CHECK(refusal(arguments, 2).first == ExitCode::usage);
  arguments = {};
  arguments.threads = 2;
  arguments.library = true;
  CHECK(refusal(arguments, 2).first == ExitCode::usage);
}

}  // namespace
}  // namespace fourfold::bench
