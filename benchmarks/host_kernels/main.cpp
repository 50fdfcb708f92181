// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// host_kernels [pattern]: how close the memory-bound kernels (those whose name contains the
/// pattern) come to what one core of this machine can do.
#include "measure.hpp"

#include <fourfold/kernels/runtime.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace {

using namespace fourfold;
using namespace fourfold::benchmarks;

constexpr double seconds_per_case = 1.0;

void print_machine() {
  constexpr std::int64_t words = 16 << 20;
  const Mix copy = mix_of_size<1, 0, 1>(4);
  StreamCeiling stream(copy, words);
  std::vector<char> from(4 * words, 1);
  std::vector<char> to(4 * words, 1);
  const KernelCase memcpy_case{
      "memcpy", "", "", words, copy, 1, [&] { std::memcpy(to.data(), from.data(), to.size()); }};
  const Measurement measured = measure(memcpy_case, seconds_per_case);
  const double bytes = 8.0 * words;
  fmt::print("{}\n", kernels::description());
  fmt::print("copy of 64 MiB, regular stores   {:6.1f} GB/s (read + written)\n",
             bytes / measured.copy_s * 1e-9);
  fmt::print("memcpy of 64 MiB                 {:6.1f} GB/s\n", bytes / measured.kernel_s * 1e-9);
  fmt::print("vector_exp in the L1 cache       {:6.2f} G/s\n\n", words / measured.exp_s * 1e-9);
}

void print_legend() {
  fmt::print(
      "Bytes: what the program reads and writes per element (read + updated twice + written; "
      "reads\n"
      "for ownership not counted). Copy: the same streams, read, updated and written with regular\n"
      "stores and no arithmetic, measured in turn with the kernel. Exp: the exponentials that the\n"
      "formula needs, at the rate of the vectorised exp in the L1 cache, measured in turn as "
      "well.\n"
      "Shares are time of the ceiling / time of the kernel; the larger one tells what binds. Best\n"
      "times of all rounds.\n\n");
}

void print_row(const KernelCase& one) {
  const Measurement measured = measure(one, seconds_per_case);
  const double bytes = static_cast<double>(bytes_per_element(one.mix) * one.elements);
  const double copy_share = measured.copy_s / measured.kernel_s;
  const double exp_share = measured.exp_s / measured.kernel_s;
  fmt::print("{:<31} {:<5} {:>12} {:>7.1f} {:>8.2f} {:>8.1f} {:>6.1f}% {:>6.1f}%  {}\n", one.kernel,
             one.dtype, one.shape, bytes * 1e-6, measured.kernel_s * 1e3,
             bytes / measured.kernel_s * 1e-9, 100 * copy_share, 100 * exp_share,
             exp_share > copy_share ? "exp" : "memory");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view pattern = argc > 1 ? argv[1] : "";
  const kernels::Runtime runtime(1);
  print_machine();
  print_legend();
  fmt::print("{:<31} {:<5} {:>12} {:>7} {:>8} {:>8} {:>7} {:>7}  {}\n", "kernel", "dtype", "shape",
             "MB", "ms", "GB/s", "copy", "exp", "bound by");
  for (const auto group : {norm_cases, activation_cases, dropout_cases, embedding_cases,
                           cross_entropy_cases, optimizer_cases, cast_cases}) {
    for (const DType dtype : {DType::f32, DType::bf16}) {
      for (const KernelCase& one : group(dtype)) {
        if (one.kernel.find(pattern) != std::string::npos) {
          print_row(one);
        }
      }
    }
  }
  return 0;
}
