// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// optimizer_offload: updates of a model whose optimizer state lies in memory, and then in a file,
/// with the same gradients: seconds, memory that stays resident, whether the weights have the same
/// bits, and the rate of the disk beside what it does when nothing is computed.
#include "raw_disk.hpp"

#include <fourfold/kernels/runtime.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/parallel/shard_layout.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/run.hpp>
#include <fourfold/train/optimizer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace fourfold;

struct Options {
  std::string directory;
  double state_gib = 4;
  double buffer_mb = 100;
  int steps = 3;
};

/// A llama whose masters and two moments are about so large.
model::Architecture model_of(double state_gib) {
  model::Architecture config;
  set_family(config, model::Family::llama);
  config.layers = 8;
  config.hidden = 1024;
  config.attention.heads = config.attention.kv_heads = 16;
  config.vocab = 16000;
  config.context = 128;
  config.tie_embeddings = false;
  const double parameters = state_gib * 1073741824.0 / 12;
  const double ends = 2.0 * 16000 * 1024;
  const double attention = 8.0 * 4 * 1024 * 1024;
  config.feed_forward.width =
      static_cast<std::int64_t>((parameters - ends - attention) / (8.0 * 3 * 1024)) / 16 * 16;
  return config.resolved();
}

/// Of /proc/self/status, in bytes.
double status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) {
      return 1024 * std::stod(line.substr(name.size() + 1));
    }
  }
  return 0;
}

/// The peak begins anew from here.
void reset_peak() {
  std::ofstream("/proc/self/clear_refs") << "5";
}

struct Result {
  std::vector<std::byte> weights;
  double step_s = 0;
  double resident_bytes = 0;  ///< at most, beside what was there before the state
  double state_bytes = 0;
};

Result measure(const Options& options, runfile::StateTier where) {
  const model::Architecture config = model_of(options.state_gib);
  const std::vector<model::ParameterSpec> table = model::parameter_table(config);
  const std::vector<Box> boxes = model::whole_boxes(table);
  const parallel::ZeroOptions zero{.offloads_state = true};
  device::Arena arena;
  const model::Parameters parameters(table, boxes, DType::bf16, arena,
                                     parallel::parameter_memory(zero, config));
  const parallel::ShardLayout shards(table, boxes, parameters.layout(), 1);
  auto* const gradient = parameters.gradients().as<float>();
  for (std::int64_t i = 0; i < parameters.layout().elements; ++i) {
    gradient[i] = static_cast<float>((i * 2654435761 >> 7) % 2001 - 1000) * 1e-5F;
  }
  const double before = status_bytes("VmRSS");
  runfile::OffloadConfig offload{.optimizer = where, .nvme_directory = options.directory};
  train::StateTier tier(offload, arena);
  const parallel::ParameterShard share =
      parallel::make_share(parameters, shards, 0, zero, arena, tier.state());
  std::vector<std::size_t> order(parameters.layout().segments.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = order.size() - 1 - i;
  }
  reset_peak();
  Result result;
  train::Optimizer optimizer({.rules = train::rules_of({}), .buffer_mb = options.buffer_mb}, share,
                             tier, order);
  share.initialise(1, {},
                   [&](const TensorView& values) { tier.release(values.data(), values.bytes()); });
  optimizer.update_weights_from_masters({});
  for (int step = 0; step < options.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    optimizer.begin_step();
    for (const std::size_t segment : order) {
      optimizer.update(segment, {.update = step + 1, .lr = 1e-3}, {});
    }
    optimizer.synchronize();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    fmt::print("  step {}: {:.2f} s\n", step + 1, seconds.count());
    std::fflush(stdout);
    result.step_s = step == 0 ? seconds.count() : std::min(result.step_s, seconds.count());
  }
  result.resident_bytes = status_bytes("VmHWM") - before;
  result.state_bytes = 12.0 * static_cast<double>(share.state_elements());
  const TensorView weights = parameters.weights();
  result.weights.resize(weights.bytes());
  std::memcpy(result.weights.data(), weights.data(), weights.bytes());
  return result;
}

ExitCode run(const Options& options) {
  const kernels::Runtime kernels;
  constexpr double gib = 1073741824.0;
  const auto raw_rates = [&] {
    const benchmarks::DiskRates rates = benchmarks::raw_streaming_rates(
        options.directory, static_cast<std::uint64_t>(options.state_gib * gib));
    fmt::print("{} by itself, GB/s: writes {:.2f}, reads {:.2f}, both at once {:.2f}\n",
               options.directory, rates.write / 1e9, rates.read / 1e9, rates.both / 1e9);
    return rates.best();
  };
  const double raw = raw_rates();
  fmt::print("state in host memory\n");
  const Result cpu = measure(options, runfile::StateTier::cpu);
  fmt::print("state on disk\n");
  const Result nvme = measure(options, runfile::StateTier::nvme);
  const double raw_after = raw_rates();
  const double rate = 2 * nvme.state_bytes / nvme.step_s;
  const bool same = cpu.weights == nvme.weights;
  fmt::print(
      "\nstate                        {:.2f} GiB\n"
      "resident for it, in memory   {:.0f} MiB\n"
      "resident for it, on disk     {:.0f} MiB (buffer {:g} MB)\n"
      "best step, in memory         {:.2f} s\n"
      "best step, on disk           {:.2f} s: {:.2f} GB/s read and written\n"
      "of the disk's best rate       {:.0f} %\n"
      "weights                      {}\n",
      nvme.state_bytes / gib, cpu.resident_bytes / 1048576, nvme.resident_bytes / 1048576,
      options.buffer_mb, cpu.step_s, nvme.step_s, rate / 1e9, 100 * rate / std::max(raw, raw_after),
      same ? "the same bits" : "DIFFER");
  return same ? ExitCode::finished : ExitCode::differs;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App command{"Updates with the optimizer's state in memory and on disk", "optimizer_offload"};
  Options options;
  command.add_option("directory", options.directory, "on the disk in question")->required();
  command.add_option("--state-gib", options.state_gib, "masters and moments")
      ->check(CLI::Range(1.0, 1e4))
      ->capture_default_str();
  command.add_option("--buffer-mb", options.buffer_mb, "offload.buffer_mb")->capture_default_str();
  command.add_option("--steps", options.steps, "updates of each kind")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  return program::run("optimizer_offload", [&] {
    if (const auto end = program::parse(command, argc, argv)) {
      return *end;
    }
    return run(options);
  });
}
