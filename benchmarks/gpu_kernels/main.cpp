// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// gpu_kernels: how close each kernel of a training step comes to what the device can do at best:
/// a copy within its memory, or a large product of random numbers. Prints a table.
#include "cases.hpp"
#include "report.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/kernels/runtime.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

namespace fourfold::benchmarks {

Sizes sizes_of_models() {
  return {.layer_norms = {{65536, 768}, {32768, 1024}, {16384, 1600}},
          .rms_norm = {16384, 4096},
          .gelu = {65536, 3072},
          .swiglu = {8192, 14336},
          .logits = {16384, 50304},
          .vocabulary = 50257,
          .embeddings = {65536, 768},
          .parameters = std::int64_t{123} << 20,
          .copied_bytes = std::int64_t{1} << 30,
          .product = 8192,
          .attentions = {{64, 1024, 12, 12, 64},
                         {16, 1024, 25, 25, 64},
                         {4, 2048, 32, 8, 128},
                         {2, 4096, 32, 8, 128},
                         {1, 8192, 32, 8, 128}},
          .rotated = {4, 4096, 32, 8, 128},
          .models = {{"gpt2-124m", 65536, 768, 2304, 3072, 3072, 50304, true},
                     {"gpt2-350m", 32768, 1024, 3072, 4096, 4096, 50304, true},
                     {"gpt2-1558m", 16384, 1600, 4800, 6400, 6400, 50304, true},
                     {"llama-8b", 8192, 4096, 6144, 28672, 14336, 128256, false}}};
}

Sizes tiny_sizes() {
  return {.layer_norms = {{32, 48}},
          .rms_norm = {32, 64},
          .gelu = {32, 96},
          .swiglu = {16, 40},
          .logits = {16, 320},
          .vocabulary = 257,
          .embeddings = {32, 48},
          .parameters = 5000,
          .copied_bytes = 1 << 20,
          .product = 64,
          .attentions = {{2, 24, 4, 4, 16}, {1, 40, 4, 2, 32}},
          .rotated = {2, 24, 4, 2, 16},
          .models = {{"gpt2-tiny", 32, 48, 144, 192, 192, 320, true},
                     {"llama-tiny", 24, 64, 96, 160, 80, 320, false}}};
}

namespace {

struct Options {
  std::string only;
  std::filesystem::path json;
  Repetition repetition;
  bool tiny = false;
};

/// Makes the operands of a group.
using MakeGroup = std::function<CaseGroup()>;

std::vector<MakeGroup> groups_of(const Sizes& sizes) {
  std::vector<MakeGroup> groups;
  for (const RowShape& shape : sizes.layer_norms) {
    groups.push_back([&shape] { return layer_norm_cases(shape); });
  }
  for (const auto make : {rms_norm_cases, gelu_cases, swiglu_cases, column_sum_cases, rotary_cases,
                          embedding_cases, cross_entropy_cases, optimizer_cases}) {
    groups.push_back([&sizes, make] { return make(sizes); });
  }
  for (const AttentionSize& size : sizes.attentions) {
    groups.push_back([&size] { return attention_cases(size); });
  }
  for (const ModelShape& model : sizes.models) {
    for (int layer = 0; layer < linear_layers; ++layer) {
      groups.push_back([&model, layer] { return product_cases(model, layer); });
    }
  }
  return groups;
}

void print_row(const MeasuredKernel& one) {
  const bool copies = one.roof == Roof::copy;
  fmt::print("{:<31} {:<30} {:>9.4f} {:>9.1f} {:<8} {:>6.1f} %\n", one.kernel, one.shape,
             one.measured.median_s * 1e3, one.measured.rate * (copies ? 1e-9 : 1e-12),
             copies ? "GB/s" : "TFLOP/s", 100 * one.share);
  std::fflush(stdout);
}

KernelsReport measure_all(const Options& options) {
  const device::Stream stream;
  const Sizes sizes = options.tiny ? tiny_sizes() : sizes_of_models();
  const auto roof = [&](const CaseGroup& group) {
    const KernelCase& one = group.front();
    const Measurement measured = measure(one, options.repetition, stream);
    print_row({one.kernel, one.shape, one.roof, one.work, measured, 1.0});
    return measured;
  };
  fmt::print("{}; {}\n\n", device::device_facts().name, kernels::description());
  fmt::print("{:<31} {:<30} {:>9} {:>9} {:<8} {:>8}\n", "kernel", "shape", "ms", "rate", "",
             "of roof");
  KernelsReport report{
      .device = fmt::format("{}; {}", device::device_facts().name, kernels::description()),
      .copy = roof(copy_roof(sizes)),
      .product = roof(product_roof(sizes)),
      .kernels = {}};
  for (const MakeGroup& make : groups_of(sizes)) {
    for (const KernelCase& one : make()) {
      if ((one.kernel + ' ' + one.shape).find(options.only) == std::string::npos) {
        continue;
      }
      const Measurement measured = measure(one, options.repetition, stream);
      const double best = one.roof == Roof::copy ? report.copy.rate : report.product.rate;
      report.kernels.push_back(
          {one.kernel, one.shape, one.roof, one.work, measured, measured.rate / best});
      print_row(report.kernels.back());
    }
  }
  return report;
}

ExitCode measure_and_tell(const Options& options) {
  const kernels::Runtime runtime;
  const KernelsReport report = measure_all(options);
  fmt::print(
      "\nCopies: bytes that have to be read and written, beside those of a copy within the "
      "memory.\n"
      "Products and attention: model FLOPs (of attention those of visible pairs), beside the "
      "large\n"
      "product. Medians of {} groups of runs over operands that no cache holds.\n",
      options.repetition.groups);
  if (!options.json.empty()) {
    io::AtomicFile file(options.json);
    file.write(to_json(report));
    file.publish();
  }
  return ExitCode::finished;
}

}  // namespace
}  // namespace fourfold::benchmarks

int main(int argc, char** argv) {
  using namespace fourfold;
  CLI::App command{"Each kernel's share of what this GPU can do at best", "gpu_kernels"};
  benchmarks::Options options;
  command.add_option("--only", options.only, "kernels and shapes whose names contain this");
  command.add_option("--json", options.json, "where to write all figures");
  command.add_option("--groups", options.repetition.groups, "of runs; their median counts")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--group-s", options.repetition.group_s, "seconds that a group has to take")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_flag("--tiny", options.tiny, "tiny shapes, to try the program: no figures");
  return program::run("gpu_kernels", [&] {
    if (const auto end = program::parse(command, argc, argv)) {
      return *end;
    }
    return benchmarks::measure_and_tell(options);
  });
}
