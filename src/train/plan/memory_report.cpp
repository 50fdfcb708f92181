// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_report.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/train/rank_plan.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace fourfold::train {

namespace {

/// As a share where that says something. What a process needs beside its tensors (libraries' code,
/// the heap, buffers) does not grow with them: of a small plan it is many times as much.
std::string difference_text(std::int64_t planned, std::int64_t taken) {
  constexpr std::int64_t smallest_plan = 256 << 20;
  const auto difference = static_cast<double>(taken - planned);
  return planned < smallest_plan
             ? fmt::format("{:+.1f} MiB", difference / 1048576.0)
             : fmt::format("{:+.1f} %", 100.0 * difference / static_cast<double>(planned));
}

/// Which rank has the largest value; the first of several.
int rank_of_largest(std::int64_t value, comm::Communicator& world) {
  const std::int64_t largest = comm::all_reduce_scalar(world, value, comm::ReduceOp::max);
  const std::int64_t nobody = std::numeric_limits<std::int64_t>::min();
  const std::int64_t candidate = value == largest ? -world.rank() : nobody;
  return static_cast<int>(-comm::all_reduce_scalar(world, candidate, comm::ReduceOp::max));
}

}  // namespace

std::string mib_text(std::size_t bytes) {
  return fmt::format("{:.1f}", static_cast<double>(bytes) / 1048576.0);
}

std::string memory_by_use_text(const device::Arena& arena) {
  std::string text;
  for (std::size_t i = 0; i < device::memory_use_count; ++i) {
    const auto use = static_cast<device::MemoryUse>(i);
    text +=
        fmt::format("{}{} {}", i == 0 ? "" : ", ", device::name(use), mib_text(arena.bytes(use)));
  }
  return text;
}

std::size_t own_library_bytes(const ResolvedRun& run, const comm::Mesh& mesh) {
  return device::has_own_memory
             ? library_bytes(run, mesh.coordinate().cp, device::device_facts().compute_capability)
             : 0;
}

telemetry::MemoryRecord memory_record(const device::Arena& arena, const StateTier& tier,
                                      std::size_t staging_bytes, std::size_t library_bytes,
                                      const device::MemoryWatch& host,
                                      const device::DeviceMemoryWatch& device, comm::Mesh& mesh) {
  comm::Communicator& world = mesh.world();
  const bool is_of_device = device::has_own_memory;
  const std::size_t taken = is_of_device ? device.peak_bytes() : host.peak_bytes();
  const int rank = rank_of_largest(taken, world);
  const auto of_that_rank = [&](std::int64_t bytes) {
    return comm::all_reduce_scalar(world, world.rank() == rank ? bytes : 0, comm::ReduceOp::sum);
  };
  telemetry::MemoryRecord record{.rank = rank};
  for (std::size_t i = 0; i < device::memory_use_count; ++i) {
    const auto use = static_cast<device::MemoryUse>(i);
    record.planned_bytes.emplace_back(device::name(use), of_that_rank(arena.bytes(use)));
  }
  if (is_of_device) {
    record.planned_bytes.emplace_back("libraries", of_that_rank(library_bytes));
  } else {
    record.planned_bytes.emplace_back("offloaded", of_that_rank(tier.host_bytes()));
    record.planned_bytes.emplace_back("checkpoint copy", of_that_rank(staging_bytes));
  }
  record.taken_bytes = of_that_rank(taken);
  record.device_used_bytes = of_that_rank(device.used_bytes());
  record.device_total_bytes = of_that_rank(device.total_bytes());
  return record;
}

std::string memory_text(const telemetry::MemoryRecord& record, std::size_t beside_bytes) {
  const std::int64_t planned = record.all_planned_bytes();
  const std::string taken = mib_text(record.taken_bytes);
  const std::string beside =
      beside_bytes == 0
          ? ""
          : fmt::format("; {} MiB are counted for what is no tensor", beside_bytes >> 20);
  std::string text =
      fmt::format("memory of rank {}: {} MiB planned, at most {} MiB taken ({}{})", record.rank,
                  mib_text(planned), taken, difference_text(planned, record.taken_bytes), beside);
  if (record.device_total_bytes > 0) {
    const auto gib = [](std::int64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
    text += fmt::format(", {:.1f} of {:.1f} GiB of the GPU in use, {:.1f} free",
                        gib(record.device_used_bytes), gib(record.device_total_bytes),
                        gib(record.device_total_bytes - record.device_used_bytes));
  }
  return text;
}

device::Arena make_arena(const ResolvedRun& run, comm::Communicator& world) {
  return world.registers_memory() ? device::Arena(plan_rank(run, world.rank()).extent_bytes)
                                  : device::Arena();
}

RegisteredMemories register_memory(const device::Arena& arena,
                                   const parallel::MovedMemories& moved) {
  RegisteredMemories registered;
  for (auto each = moved.begin(); each != moved.end(); ++each) {
    if (std::find(moved.begin(), each, *each) != each) {
      continue;
    }
    arena.for_each([&](device::MemoryUse use, void* data, std::size_t bytes) {
      if (use != each->use) {
        return;
      }
      if (auto memory = each->by->register_memory(data, bytes)) {
        registered.push_back(std::move(memory));
      }
    });
  }
  return registered;
}

}  // namespace fourfold::train
