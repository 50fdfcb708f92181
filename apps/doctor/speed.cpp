// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"
#include "records.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/matmul.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>

namespace fourfold::doctor {
namespace {

constexpr int side = 512;  ///< of the matrices: 3 MiB of f32, and 0.27 GFLOP a product
/// Of an array of the triad; the three are larger than a core's share of any cache.
constexpr int triad_elements = 8 << 20;

double cpu_s() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  const auto exact = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  return std::chrono::duration<double>(exact).count();
}

/// Calls per second in a window that begins on all ranks together.
template <class Call>
double rate_of(const Call& call, double window_s, comm::Communicator& world) {
  call();  // what is set up or brought into memory at the first
  world.barrier();
  const double start_s = steady_time_s();
  double end_s = start_s;
  int calls = 0;
  while (end_s - start_s < window_s) {
    call();
    ++calls;
    end_s = steady_time_s();
  }
  return calls / (end_s - start_s);
}

}  // namespace

RankSpeed measure_speed(DType dtype, double window_s, comm::Communicator& world) {
  RankSpeed speed;
  {
    const device::Tensor x(dtype, {side, side});
    const device::Tensor w(dtype, {side, side});
    const device::Tensor y(dtype, {side, side});
    const double start_s = steady_time_s();
    const double start_cpu_s = cpu_s();
    const double rate = rate_of([&] { kernels::linear(x, w, {}, y, {}); }, window_s, world);
    speed.cores_had = (cpu_s() - start_cpu_s) / (steady_time_s() - start_s);
    speed.products_gflops = rate * 2e-9 * (side * side * side);
  }
  const device::Tensor a(DType::f32, {triad_elements});
  const device::Tensor b(DType::f32, {triad_elements});
  const device::Tensor c(DType::f32, {triad_elements});
  const double rate = rate_of([&] { kernels::add_scaled(b, 3, c, a, {}); }, window_s, world);
  speed.triad_gb_s = rate * 3e-9 * (triad_elements * 4);
  return speed;
}

}  // namespace fourfold::doctor
