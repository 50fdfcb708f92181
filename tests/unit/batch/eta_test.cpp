// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/run_view.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold::batch;

TEST_CASE("a run is done before its job ends, or needs more jobs", "[eta]") {
  // A job of 100 s of which 60 are over.
  EtaFacts facts{.now_unix_s = 1060,
                 .remaining_s = 40,
                 .goes_on = true,
                 .began_unix_s = 1000,
                 .deadline_unix_s = 1100};
  CHECK(eta(facts).in_time == true);
  CHECK(eta(facts).finish_unix_s == 1100);
  CHECK(eta(facts).more_jobs == 0);
  facts.remaining_s = 41;
  CHECK(eta(facts).in_time == false);
  CHECK(eta(facts).more_jobs == 1);
  facts.remaining_s = 40 + 250;
  CHECK(eta(facts).more_jobs == 3);
  facts.now_unix_s = 2000;  // long past its end
  CHECK(eta(facts).more_jobs == 3);
}

TEST_CASE("a run that has stopped needs jobs for all that is left", "[eta]") {
  EtaFacts facts{.now_unix_s = 5000,
                 .remaining_s = 250,
                 .goes_on = false,
                 .began_unix_s = 1000,
                 .deadline_unix_s = 1100};
  CHECK_FALSE(eta(facts).in_time);
  CHECK(eta(facts).more_jobs == 3);
  facts.began_unix_s.reset();
  CHECK_FALSE(eta(facts).more_jobs);
  facts.began_unix_s = 1100;  // a job of no length
  CHECK_FALSE(eta(facts).more_jobs);
  facts.deadline_unix_s.reset();
  CHECK(eta(facts).finish_unix_s == 5250);
}

TEST_CASE("what takes for ever has a number", "[eta]") {
  const EtaFacts facts{.now_unix_s = 0,
                       .remaining_s = 1e300,
                       .goes_on = true,
                       .began_unix_s = 0,
                       .deadline_unix_s = 1};
  CHECK(eta(facts).more_jobs == 1'000'000'000);
}
