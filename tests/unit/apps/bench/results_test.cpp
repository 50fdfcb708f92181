// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fourfold::bench {
namespace {

using Catch::Approx;

const Setting with_library{.transport = "mpi",
                           .axis = "dp",
                           .ranks = 4,
                           .lines = 2,
                           .dtype = DType::f32,
                           .library = "MPI <1>"};

Row row_of(exchange::Operation operation, std::int64_t bytes, double call_s) {
  return {.operation = operation,
          .algorithm = comm::Algorithm::direct,
          .extent = exchange::extent_of(operation, bytes, 4, 4),
          .call_s = call_s};
}

TEST_CASE("a line of the table", "[results]") {
  Row row = row_of(exchange::Operation::all_reduce, 1'000'000, 1e-3);
  row.library_call_s = 2.5e-3;
  CHECK(row.algorithm_gb_s() == Approx(1));
  CHECK(row.bus_gb_s(4) == Approx(1.5));
  CHECK(*row.library_bus_gb_s(4) == Approx(0.6));
  CHECK(*row.ratio() == Approx(2.5));
  CHECK(table_line(with_library, row) ==
        "all_reduce     direct       1000000     250000  f32        1000    1.000    1.500      0"
        "        2500    0.600   2.500\n");
  row.library_call_s = {};
  CHECK(table_line(with_library, row).ends_with("-        -       -\n"));
}

TEST_CASE("the file for programs has a value under each name", "[results]") {
  Row row = row_of(exchange::Operation::all_gather, 4096, 2e-6);
  row.wrong = 3;
  const std::string csv = to_csv(with_library, std::vector{row});
  const std::string names = csv.substr(0, csv.find('\n'));
  const std::string values = csv.substr(csv.find('\n') + 1);
  CHECK(std::count(names.begin(), names.end(), ',') ==
        std::count(values.begin(), values.end(), ','));
  CHECK(values == "all_gather,direct,mpi,dp,4,2,4096,256,f32,2,2.048,1.536,3,MPI <1>,,,\n");
  CHECK(table_foot(with_library, std::vector{row}).find("wrong elements: 3 ") != std::string::npos);
}

TEST_CASE("the picture has a line per operation and names the library", "[plot]") {
  std::vector<Row> rows;
  for (const exchange::Operation operation :
       {exchange::Operation::all_reduce, exchange::Operation::send_recv}) {
    for (const std::int64_t bytes : {64, 4096, 262'144}) {
      rows.push_back(row_of(operation, bytes, 1e-5));
      rows.back().library_call_s = 2e-5;
    }
  }
  const std::string svg = plot_svg(with_library, rows);
  const auto count = [&svg](const std::string& text) {
    int found = 0;
    for (std::size_t at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1)) {
      ++found;
    }
    return found;
  };
  CHECK(count("<path class=\"line c") == 2);
  CHECK(count("<path class=\"line dash c") == 2);
  CHECK(count("<circle") == 6);
  CHECK(count("MPI &lt;1&gt;") == 1);
  CHECK(count("256 KiB") >= 2);
  CHECK(count(">all_reduce, direct</text>") == 1);  // and what is messages always by its name alone
  CHECK(count(">send_recv</text>") == 1);
  CHECK(count("nan") + count("inf") == 0);
  // One point, and none.
  CHECK(plot_svg(with_library, std::vector{rows.front()}).find("nan") == std::string::npos);
  CHECK(plot_svg(with_library, {}).find("nan") == std::string::npos);
}

}  // namespace
}  // namespace fourfold::bench
