// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "delayed_pipeline.hpp"

#include <fourfold/device/arena.hpp>
#include <fourfold/model/seams.hpp>
#include <fourfold/parallel/measured_timeline.hpp>
#include <fourfold/parallel/pipeline.hpp>
#include <fourfold/parallel/split_layers.hpp>
#include <fourfold/parallel/stage_layout.hpp>

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace fourfold::benchmarks {
namespace {

constexpr std::int64_t layers_per_rank = 4;
constexpr std::int64_t tokens = 16;
constexpr int steps = 3;

model::ModelConfig tiny_model(int ranks) {
  model::ModelConfig config;
  config.layers = layers_per_rank * ranks;
  config.hidden = 16;
  config.heads = 2;
  config.vocab = 64;
  config.context = tokens;
  return config.resolved();
}

/// One rank of its own for all but the pipeline; layers take their time.
class DelayedSeams : public model::Seams {
 public:
  DelayedSeams(const Delays& delays, std::int64_t layers) : delays_(delays), layers_(layers) {}
  void weights_needed(model::Part part, device::StreamRef /*stream*/) override {
    sleep(part.unit, delays_.pass_s);
  }
  void gradients_ready(model::Part part, model::Gradients /*state*/,
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

}  // namespace

parallel::Timeline measure_delayed(const parallel::Schedule& schedule, const Delays& delays,
                                   comm::Communicator& world) {
  const model::ModelConfig config = tiny_model(world.size());
  const parallel::StageLayout layout{
      schedule,
      parallel::split_layers(
          config, {.stages = world.size(), .chunks = schedule.chunks, .stage_layers = {}}),
      false};
  device::Arena arena;
  const model::Parameters parameters(model::parameter_table(config, layout.chunks_of(world.rank())),
                                     DType::f32, arena);
  DelayedSeams seams(delays, config.layers);
  parallel::Pipeline pipeline(config, layout, world, parameters, seams, arena,
                              {.sequences = 1, .tokens = tokens});
  parallel::ActionRecorder recorder(schedule.ranks[static_cast<std::size_t>(world.rank())].size());
  pipeline.record_into(&recorder);
  const std::vector<std::int32_t> number_N(tokens, 1);
  const std::vector<std::int64_t> sample_N(tokens, 0);
  const std::vector<model::Batch> batches =
      same_batches(schedule.micro_batches, number_N, sample_N);
  const device::StreamClock clock({});
  for (int step = 0; step < steps; ++step) {
    world.barrier();
    pipeline.train(batches, 1.0F, [](model::Stage&, int) {}, {});
  }
  return gather_timeline(
      schedule, {.actions_s = recorder.times_s(clock), .spans = {}, .clock_offset_s = 0}, world);
}

}  // namespace fourfold::benchmarks
