// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// host_gemm: what products and attention of a GPT-2 124M step reach on this machine. The ceiling
/// is the best product of the step, measured in the same run; every row is a share of it.
#include "work.hpp"

#include <fourfold/kernels/runtime.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

namespace {

using namespace fourfold;
using benchmarks::Work;

/// Rounds over all the work, so that a busy moment of the machine hits one round and not one row.
void measure(std::vector<Work>& all, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    for (Work& work : all) {
      const auto start = std::chrono::steady_clock::now();
      work.run();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      work.best_s = std::min(work.best_s, passed.count());
    }
  }
}

double best_rate(const std::vector<Work>& all) {
  double best = 0;
  for (const Work& work : all) {
    best = std::max(best, work.is_product ? work.flop / work.best_s : 0.0);
  }
  return best;
}

void print_table(const std::vector<Work>& all, double ceiling, std::int64_t step_tokens) {
  double total_s = 0;
  for (const Work& work : all) {
    total_s += work.best_s * work.per_step;
  }
  fmt::print("{:<30} {:>18} {:>9} {:>9} {:>9} {:>8}\n", "", "shape", "ms", "GFLOP/s", "ceiling",
             "of time");
  for (const Work& work : all) {
    const double rate = work.flop / work.best_s;
    fmt::print("{:<30} {:>18} {:>9.2f} {:>9.1f} {:>8.1f}% {:>7.1f}%\n", work.name, work.shape,
               work.best_s * 1e3, rate * 1e-9, 100 * rate / ceiling,
               100 * work.best_s * work.per_step / total_s);
  }
  fmt::print("all of a step: {:.0f} ms, {:.1f} tokens/s if nothing else took time\n\n",
             total_s * 1e3, static_cast<double>(step_tokens) / total_s);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Rates of the products and of attention in a step of GPT-2 124M on this machine");
  int threads = 1;
  int rounds = 5;
  std::int64_t batch = 2;
  std::int64_t tokens = 1024;
  std::vector<std::string> dtypes{"f32", "bf16"};
  app.add_option("--threads", threads, "threads of a rank")->capture_default_str();
  app.add_option("--rounds", rounds, "repetitions; the best one counts")->capture_default_str();
  app.add_option("--batch", batch, "sequences of a micro-batch")->capture_default_str();
  app.add_option("--tokens", tokens, "tokens of a sequence")->capture_default_str();
  app.add_option("--dtypes", dtypes, "f32, bf16")->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const kernels::Runtime runtime(threads);
  fmt::print("{}\n\n", kernels::description());
  double best = 0;
  for (const std::string& text : dtypes) {
    const DType dtype = text == "bf16" ? DType::bf16 : DType::f32;
    std::vector<Work> all = benchmarks::products(dtype, batch * tokens);
    for (Work& work : benchmarks::attentions(dtype, batch, tokens)) {
      all.push_back(std::move(work));
    }
    measure(all, rounds);
    // A CPU without bf16 products multiplies them in f32, and so has no other ceiling.
    best = std::max(best, best_rate(all));
    fmt::print("{}: ceiling {:.1f} GFLOP/s\n", name(dtype), best * 1e-9);
    print_table(all, best, batch * tokens);
    std::fflush(stdout);
  }
  return 0;
}
