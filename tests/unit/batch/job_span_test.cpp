// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/accounting.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <string>

using namespace fourfold::batch;

TEST_CASE("the span of a job is what squeue says of it", "[job_span]") {
  // As Slurm 22.05 prints them: over, waiting, cancelled while it waited, and training.
  const std::string text =
      "Welcome|to|the|cluster\n"
      "3|NODE_FAIL|1795913204|1795913208|2|node[0-1]\n"
      "7|PENDING|1795913299|1795913399|2|\n"
      "4|CANCELLED|1795913208|1795913208|2|\n"
      "8|PENDING|N/A|N/A|2|\n"
      "6|RUNNING|1795913210|1795913510|3|node[0-2]\n"
      "9|COMPLETING|1795913210|1795913215|1|node2";
  CHECK(job_spans(text) == std::vector<AccountedStart>{{.job = "3",
                                                        .state = "NODE_FAIL",
                                                        .began_unix_s = 1795913204,
                                                        .ended_unix_s = 1795913208,
                                                        .nodes = 2},
                                                       {.job = "6",
                                                        .state = "RUNNING",
                                                        .began_unix_s = 1795913210,
                                                        .ended_unix_s = std::nullopt,
                                                        .nodes = 3},
                                                       {.job = "9",
                                                        .state = "COMPLETING",
                                                        .began_unix_s = 1795913210,
                                                        .ended_unix_s = 1795913215,
                                                        .nodes = 1}});
}

TEST_CASE("what squeue does not print is no job", "[job_span]") {
  for (const char* const text :
       {"", "\n", "slurm_load_jobs error: Invalid job id specified\n", "3|RUNNING|1|2|2\n",
        "x|RUNNING|1|2|2|n\n", "3|RUNNING|soon|2|2|n\n", "3|RUNNING|1|2|many|n\n",
        "3|RUNNING|-1|2|2|n\n", "3|running|1|2|2|n\n", "3|RUNNING|1|2|2|n|more\n"}) {
    CAPTURE(text);
    CHECK(job_spans(text).empty());
  }
  const auto odd = job_spans("3|FAILED|99999999999999999999999|Unknown|0|n\n");
  REQUIRE(odd.size() == 1);
  CHECK(odd[0].began_unix_s == 0);
  CHECK_FALSE(odd[0].ended_unix_s);
  CHECK(odd[0].nodes == 1);
}

TEST_CASE("several jobs are asked for at once", "[job_span]") {
  const std::vector<std::string> command = job_spans_command(std::vector<std::string>{"7", "12"});
  CHECK(command.front() == "env");
  CHECK(std::count(command.begin(), command.end(), "--jobs=7,12") == 1);
}
