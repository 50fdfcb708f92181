// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "delayed_pipeline.hpp"

#include <fourfold/device/arena.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/parallel/action_recorder.hpp>
#include <fourfold/parallel/pipeline.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace fourfold::benchmarks {
namespace {

constexpr std::int64_t layers_per_rank = 4;
constexpr std::int64_t tokens = 16;
constexpr int steps = 3;

model::Architecture tiny_model(int ranks) {
  model::Architecture config;
  config.layers = layers_per_rank * ranks;
  config.hidden = 16;
  config.attention.heads = 2;
  config.vocab = 64;
  config.context = tokens;
  return config.resolved();
}

/// One rank of its own for all but the pipeline; layers take their time.
class DelayedHooks : public model::ParallelHooks {
 public:
  DelayedHooks(const Delays& delays, std::int64_t layers) : delays_(delays), layers_(layers) {}
  void acquire_weights(model::WeightGroup part, device::StreamRef /*stream*/) override {
    sleep(part.unit, delays_.pass_s);
  }
  void gradients_ready(model::WeightGroup part, model::Gradients /*state*/,
                       device::StreamRef /*stream*/) override {
    sleep(part.unit, delays_.weights_s);
  }

 private:
  void sleep(int unit, double time_s) const {
    if (1 <= unit && unit <= layers_) {
      std::this_thread::sleep_for(std::chrono::duration<double>(time_s));
    }
  }

  Delays delays_;
  std::int64_t layers_;
};

std::vector<model::Batch> same_batches(int count, const std::vector<std::int32_t>& number_N,
                                       const std::vector<std::int64_t>& sample_N) {
  const ConstTensorView numbers(number_N.data(), DType::i32, {tokens});
  return {static_cast<std::size_t>(count),
          model::Batch{.sequences = 1,
                       .tokens = tokens,
                       .token_N = numbers,
                       .target_N = numbers,
                       .position_N = numbers,
                       .sample_N = ConstTensorView(sample_N.data(), DType::i64, {tokens})}};
}

/// One rank of the pipeline, set up.
class DelayedPipeline {
 public:
  DelayedPipeline(const schedule::Schedule& schedule, const Delays& delays,
                  comm::Communicator& world)
      : config_(tiny_model(world.size())),
        layout_{
            schedule,
            schedule::split_layers(
                config_, {.stages = world.size(), .chunks = schedule.chunks, .stage_layers = {}}),
            false},
        parameters_(model::parameter_table(config_, layout_.chunks_of(world.rank())), DType::f32,
                    arena_),
        hooks_(delays, config_.layers),
        pipeline_(config_, layout_, world, parameters_, hooks_, arena_,
                  {.sequences = 1, .tokens = tokens}),
        batches_(same_batches(schedule.micro_batches, number_N_, sample_N_)) {}

  void record_into(parallel::ActionRecorder& recorder) { pipeline_.record_into(&recorder); }
  void train() { pipeline_.train(batches_, 1.0F, nobody_, {}); }

 private:
  const std::function<void(model::Stage&, int)> nobody_ = [](model::Stage&, int) {};
  model::Architecture config_;
  schedule::StageLayout layout_;
  device::Arena arena_;
  model::Parameters parameters_;
  DelayedHooks hooks_;
  parallel::Pipeline pipeline_;
  std::vector<std::int32_t> number_N_ = std::vector<std::int32_t>(tokens, 1);
  std::vector<std::int64_t> sample_N_ = std::vector<std::int64_t>(tokens, 0);
  std::vector<model::Batch> batches_;
};

}  // namespace

schedule::Timeline measure_delayed(const schedule::Schedule& schedule, const Delays& delays,
                                   comm::Communicator& world) {
  DelayedPipeline pipeline(schedule, delays, world);
  parallel::ActionRecorder recorder(schedule.ranks[static_cast<std::size_t>(world.rank())].size());
  pipeline.record_into(recorder);
  const device::StreamClock clock({});
  for (int step = 0; step < steps; ++step) {
    world.barrier();
    pipeline.train();
  }
  return parallel::gather_timeline(schedule, recorder.times_s(clock), {}, 0, world);
}

}  // namespace fourfold::benchmarks
