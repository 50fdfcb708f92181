// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tiny_run.hpp"

#include "on_host.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/token_file_writer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <memory>
#include <mutex>
#include <utility>

namespace fourfold::test {
namespace {

/// Keeps the numbers of each record.
class TraceSink : public telemetry::MetricSink {
 public:
  TraceSink(RunTrace& trace, std::function<void(std::int64_t)> on_step)
      : trace_(&trace), on_step_(std::move(on_step)) {}
  void step(const telemetry::StepRecord& record, double /*unix_time_s*/) override {
    trace_->losses.push_back(record.loss);
    trace_->norms.push_back(record.grad_norm);
    trace_->loss_scales.push_back(record.loss_scale);
    trace_->skipped_steps.push_back(record.skipped_steps);
    on_step_(record.step);
  }
  void evaluation(const telemetry::EvalRecord& record, double /*unix_time_s*/) override {
    trace_->evaluations.push_back(record.loss);
  }

 private:
  RunTrace* trace_;
  std::function<void(std::int64_t)> on_step_;
};

void write_tokens(const std::filesystem::path& prefix, int count, std::uint32_t state = 12345) {
  io::TokenFileWriter writer(prefix, io::megatron_type(53));
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < count; ++i) {  // words that repeat, so that there is something to learn
    state = state * 1664525U + 1013904223U;
    const auto word = static_cast<std::int32_t>(state >> 29);
    tokens.push_back(word * 6 + i % 5);
  }
  writer.add_document(tokens);
  writer.publish();
}

}  // namespace

Options joined(Options first, const Options& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

Options mesh_options(const comm::MeshShape& mesh) {
  return {fmt::format("mesh.pp={}", mesh.pp), fmt::format("mesh.dp={}", mesh.dp),
          fmt::format("mesh.cp={}", mesh.cp), fmt::format("mesh.tp={}", mesh.tp)};
}

void check_same_bits(const RunTrace& a, const RunTrace& b) {
  REQUIRE_FALSE(a.losses.empty());
  CHECK(a.losses == b.losses);
  CHECK(std::ranges::equal(a.norms, b.norms, {}, std::bit_cast<std::uint64_t, double>,
                           std::bit_cast<std::uint64_t, double>));  // nan is like itself
  CHECK(a.loss_scales == b.loss_scales);
  CHECK(a.skipped_steps == b.skipped_steps);
  CHECK(a.evaluations == b.evaluations);
  CHECK(a.weights == b.weights);
  CHECK(a.moments == b.moments);
}

void check_close(const std::vector<double>& got, const std::vector<double>& expected,
                 double relative) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CHECK_THAT(got[i], Catch::Matchers::WithinRel(expected[i], relative));
  }
}

TinyRun::TinyRun(const std::string& family) : family_(family) {
  write_tokens(folder_.path() / "train", 3001);
  write_tokens(folder_.path() / "held_back", 401);
}

std::filesystem::path TinyRun::checkpoints(const std::string& name) const {
  return folder_.path() / name / "checkpoints";
}

void TinyRun::copy_checkpoints(const std::string& name, const std::string& copy) const {
  std::filesystem::create_directories(checkpoints(copy).parent_path());
  std::filesystem::copy(checkpoints(name), checkpoints(copy),
                        std::filesystem::copy_options::recursive);
}

std::string TinyRun::identity(const std::string& name) const {
  std::string identity;
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    identity = io::find_checkpoint(checkpoints(name), world.host()).identity();
  });
  return identity;
}

void TinyRun::grow_training_tokens() const {
  write_tokens(folder_.path() / "train", 3500);
}

void TinyRun::replace_training_tokens() const {
  write_tokens(folder_.path() / "train", 3001, 54321);
}

void TinyRun::withdraw_stop(const std::string& name) const {
  std::filesystem::remove(folder_.path() / name / "STOP");
}

runfile::EffectiveConfig TinyRun::config(int steps, const std::string& name,
                                         const Options& overrides) const {
  const std::string kv_heads = family_ == "llama" ? "kv_heads = 1\n" : "";
  const std::string text = fmt::format(
      R"([model]
family = "{}"
layers = 2
hidden = 32
heads = 2
{}ffn = 64
vocab = 53
context = 16
[train]
global_batch = 8
micro_batch = 1
steps = {}
seed = 7
eval_every_steps = 5
eval_batches = 0
[optim]
lr = 1e-2
schedule = "constant"
warmup_steps = 2
[data]
train = ["{}/train"]
validation = ["{}/held_back"]
[checkpoint]
dir = "{}"
every_steps = 4
[log]
dir = "{}"
)",
      family_, kv_heads, steps, folder_.path().string(), folder_.path().string(),
      checkpoints(name).string(), (folder_.path() / name).string());
  return runfile::parse_run_config(text, "tiny.toml", overrides);
}

RunTrace TinyRun::train(int ranks, int steps, const std::string& name, const Options& overrides,
                        const std::vector<std::string>& allowed_changes) const {
  return train(ranks, config(steps, name, overrides), allowed_changes, [](std::int64_t) {});
}

RunTrace TinyRun::train_on(const comm::MeshShape& mesh, int steps, const std::string& name,
                           const Options& overrides) const {
  return train(static_cast<int>(mesh.ranks()), steps, name, joined(overrides, mesh_options(mesh)));
}

RunTrace TinyRun::train_to_stop(int ranks, int steps, const std::string& name,
                                std::int64_t stop_step, const Options& overrides) const {
  std::filesystem::create_directories(folder_.path() / name);
  return train(ranks, config(steps, name, overrides), {}, [&](std::int64_t step) {
    if (step == stop_step) {
      std::ofstream(folder_.path() / name / "STOP") << "please\n";
    }
  });
}

RunTrace TinyRun::train_and_look(int ranks, int steps, const std::string& name,
                                 const Options& overrides,
                                 const std::function<void(std::int64_t step)>& look) const {
  return train(ranks, config(steps, name, overrides), {}, look);
}

RunTrace TinyRun::train(int ranks, const runfile::EffectiveConfig& effective,
                        const std::vector<std::string>& allowed_changes,
                        const std::function<void(std::int64_t step)>& on_step) const {
  RunTrace trace;
  comm::run_device_ranks(ranks, [&](comm::Communicator& world) {
    const comm::MeshShape shape = comm::resolve_mesh(effective.config.mesh.shape, world.size());
    comm::Mesh mesh(shape, world);
    telemetry::MetricsLog metrics;
    metrics.add(std::make_unique<TraceSink>(trace, on_step));
    const bool first = world.rank() == 0;
    train::Trainer trainer(train::resolve_run(effective, world), mesh,
                           {.allowed_changes = allowed_changes, .facts = {}},
                           first ? &metrics : nullptr);
    const train::RunResult result = trainer.run();
    if (first) {
      trace.result = result;
      for (const parallel::ParameterShard::Run& run : trainer.share().runs()) {
        const auto add_to = [](std::vector<float>& all, ConstTensorView view) {
          const std::vector<float> values = harness::on_host<float>(view);
          all.insert(all.end(), values.begin(), values.end());
        };
        add_to(trace.weights, run.master);
        for (const train::Moment& moment : trainer.optimizer().moments()) {
          add_to(trace.moments, moment.flat.rows(run.state.begin, run.state.count));
        }
      }
    }
  });
  return trace;
}

}  // namespace fourfold::test
