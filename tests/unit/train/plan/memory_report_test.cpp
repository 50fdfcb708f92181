// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_report.hpp"

#include <catch2/catch_test_macros.hpp>

namespace fourfold::train {
namespace {

constexpr std::int64_t mib = std::int64_t{1} << 20;

TEST_CASE("what was taken of memory stands beside what was planned", "[memory_report]") {
  telemetry::MemoryRecord record{
      .rank = 3,
      .planned_bytes = {{"weights", 100 * mib}, {"gradients", 300 * mib}},
      .taken_bytes = 410 * mib};
  CHECK(memory_text(record) ==
        "memory of rank 3: 400.0 MiB planned, at most 410.0 MiB taken (+2.5 %)");
  record.device_total_bytes = 80 * 1024 * mib;
  record.device_used_bytes = 61 * 1024 * mib + 512 * mib;
  CHECK(memory_text(record) ==
        "memory of rank 3: 400.0 MiB planned, at most 410.0 MiB taken (+2.5 %), 61.5 of 80.0 GiB "
        "of the GPU in use, 18.5 free");
}

TEST_CASE("of a small plan the difference is no share", "[memory_report]") {
  telemetry::MemoryRecord record{.planned_bytes = {{"weights", 6 * mib / 10}},
                                 .taken_bytes = 63 * mib / 10};
  CHECK(memory_text(record) ==
        "memory of rank 0: 0.6 MiB planned, at most 6.3 MiB taken (+5.7 MiB)");
  CHECK(memory_text(record, 57 * mib) ==
        "memory of rank 0: 0.6 MiB planned, at most 6.3 MiB taken (+5.7 MiB; 57 MiB are counted "
        "for what is no tensor)");
  record.planned_bytes = {{"weights", 255 * mib}};
  record.taken_bytes = 250 * mib;
  CHECK(memory_text(record) ==
        "memory of rank 0: 255.0 MiB planned, at most 250.0 MiB taken (-5.0 MiB)");
  record.planned_bytes = {};
  CHECK(memory_text(record) ==
        "memory of rank 0: 0.0 MiB planned, at most 250.0 MiB taken (+250.0 MiB)");
}

}  // namespace
}  // namespace fourfold::train
