// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/mesh_layout.hpp>
#include <fourfold/train/step_runner.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fourfold::train {

using device::MemoryUse;

model::StageOptions stage_options(const runfile::RunConfig& config, int cp) {
  return {.sequences = config.train.micro_batch,
          .tokens = config.model.context / cp,
          .recompute = config.train.recompute,
          .head_chunks = config.train.head_chunks,
          .seed = static_cast<std::uint64_t>(config.train.seed)};
}

namespace {

model::Parameters my_parameters(const runfile::RunConfig& config,
                                const parallel::StageLayout& layout, const comm::Mesh& mesh,
                                const parallel::ZeroOptions& zero, device::Arena& arena) {
  const std::vector<model::Units> chunks = layout.chunks_of(mesh.coordinate().pp);
  const std::vector<model::ParameterSpec> table = model::parameter_table(config.model, chunks);
  return {table, parallel::tensor_boxes(config.model, table, mesh.shape().tp, mesh.coordinate().tp),
          config.train.precision, arena, parallel::parameter_memory(zero, config.model)};
}

model::StageOptions stage_options(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                                  const parallel::ZeroOptions& zero) {
  model::StageOptions options = train::stage_options(config, mesh.cp);
  options.tiles = zero.tiles > 1;
  options.activations_on_host = config.offload.activations_on_host;
  return options;
}

/// Of all elements whose gradients this rank counts, those that it counts: each logical element is
/// counted once over the mesh. What is whole on every rank is cut as ZeRO would, so that the norm
/// has the same bits.
std::vector<TensorView> counted_gradients(const runfile::RunConfig& config,
                                          const model::Parameters& parameters,
                                          const parallel::ParameterShare& share,
                                          const comm::Mesh& mesh,
                                          const parallel::ZeroOptions& zero) {
  const int ranks = zero.shard_ranks == 1 ? zero.sum_ranks : zero.shard_ranks;
  const int index = parallel::data_plane_index(mesh.shape(), mesh.coordinate()) % ranks;
  const parallel::ShardLayout shards = parallel::make_layout(parameters, ranks);
  const std::vector<Range> counted =
      parallel::counted_once(config.model, parameters, mesh.shape().tp, mesh.coordinate().tp);
  std::vector<TensorView> gradients;
  for (const parallel::ParameterShare::Run& run : share.runs()) {
    const Range mine = shards.share(run.segment, index);
    for (const Range& range : counted) {
      const Range part = intersection(intersection(range, mine), run.flat);
      if (part.count > 0) {
        gradients.push_back(run.gradient.rows(part.begin - run.flat.begin, part.count));
      }
    }
  }
  return gradients;
}

/// The order in which gradients are complete: matrices from the last unit down, then the vectors.
/// Both holders of a tied embedding come to its tiles in one order, whatever else they hold.
std::vector<std::size_t> update_order(const model::Parameters& parameters) {
  const std::vector<model::Segment>& segments = parameters.layout().segments;
  std::vector<std::size_t> order;
  for (const bool vectors : {false, true}) {
    for (std::size_t i = segments.size(); i-- > 0;) {
      if ((segments[i].unit == model::Segment::every_unit) == vectors) {
        order.push_back(i);
      }
    }
  }
  return order;
}

}  // namespace

StepRunner::StepRunner(const runfile::RunConfig& config, comm::Mesh& mesh, device::Arena& arena)
    : StepRunner(config, lay_out(config, mesh.shape(), schedule_file_text(config, mesh.world())),
                 mesh, arena) {}

StepRunner::StepRunner(const runfile::RunConfig& config, parallel::StageLayout layout,
                       comm::Mesh& mesh, device::Arena& arena)
    : clip_norm_(config.optim.clip_norm),
      loss_scale_(config.train),
      mesh_(&mesh),
      layout_(std::move(layout)),
      zero_(zero_options(config, mesh.shape())),
      parameters_(my_parameters(config, layout_, mesh, zero_, arena)),
      shards_(parallel::make_layout(parameters_, zero_.shard_ranks)),
      order_(update_order(parameters_)),
      tier_(config.offload, arena),
      share_(parallel::make_share(parameters_, shards_,
                                  parallel::data_plane_index(mesh.shape(), mesh.coordinate()),
                                  zero_, arena, tier_.state())),
      counted_(counted_gradients(config, parameters_, share_, mesh, zero_)),
      seams_({config.model, layout_, parameters_, share_, shards_}, mesh,
             tensor_options(config, mesh.shape()), context_options(config, mesh.shape()), zero_,
             compression_options(config), arena),
      pipeline_(config.model, layout_, mesh.axis(comm::Axis::pp), parameters_, seams_, arena,
                stage_options(config, mesh.shape(), zero_), &tier_.host()),
      optimizer_(config.optim, share_, tier_, config.offload.buffer_mb, order_),
      outer_(config, trains_locally(config, mesh.shape()), share_, mesh.axis(comm::Axis::dp),
             tier_),
      loss_sum_(arena.take(MemoryUse::workspace, DType::f64, {1})),
      sum_of_squares_(arena.take(MemoryUse::workspace, DType::f64, {1})),
      norm_(arena.take(MemoryUse::workspace, DType::f32, {1})),
      gradient_scale_(arena.take(MemoryUse::workspace, DType::f32, {1})) {}

void StepRunner::run(std::int64_t step, const StepBatches& batches, double lr,
                     device::StreamRef stream) {
  loss_reduction_ = comm::Work{};
  targets_ = batches.targets;
  accumulate_gradients(batches, stream);
  note_end(StepPart::pipeline, stream);
  reduce_losses(stream);
  reduce_and_update(step, lr, stream);
  met_ = false;
  if (outer_.ends_round(step + 1)) {
    meet(stream);
  }
  note_end(StepPart::update, stream);
}

void StepRunner::meet(device::StreamRef stream) {
  optimizer_.settle();
  outer_.meet(stream);
  optimizer_.update_weights_from_masters(stream);
  for (std::size_t segment = 0; segment < parameters_.layout().segments.size(); ++segment) {
    seams_.weights_updated(segment, stream);
  }
  met_ = true;
}

void StepRunner::prepare_save(device::StreamRef stream) {
  seams_.fold_errors(stream);
  if (!outer_.in_use()) {
    return;
  }
  if (!met_) {
    seams_.wait_weights(stream);
    meet(stream);
  }
  outer_.average(optimizer_, stream);
}

bool StepRunner::masters_are_finite(device::StreamRef stream) {
  if (!tier_.is_offloaded()) {
    device::zero(sum_of_squares_.data(), sum_of_squares_.bytes(), stream);
    for (const parallel::ParameterShare::Run& run : share_.runs()) {
      kernels::sum_of_squares(run.master, sum_of_squares_, true, stream);
    }
    double sum = 0;  // the squares of f32 cannot overflow it
    device::copy(&sum, sum_of_squares_.data(), sizeof sum, stream);
    stream.synchronize();
    return std::isfinite(sum);
  }
  constexpr std::int64_t elements_at_once = std::int64_t{1} << 20;
  bool finite = true;
  for (const parallel::ParameterShare::Run& run : share_.runs()) {
    for (std::int64_t begin = 0; begin < run.flat.count; begin += elements_at_once) {
      const std::int64_t count = std::min(elements_at_once, run.flat.count - begin);
      const TensorView part = run.master.rows(begin, count);
      finite = finite && std::all_of(part.as<float>(), part.as<float>() + count,
                                     [](float value) { return std::isfinite(value); });
      tier_.release(part.data(), part.bytes());
    }
  }
  return finite;
}

void StepRunner::initialise(std::uint64_t seed, device::StreamRef stream) {
  share_.initialise(seed, stream, [&](const TensorView& values) {
    tier_.release(values.data(), values.bytes());
  });
  update_weights_from_masters(stream);
}

void StepRunner::update_weights_from_masters(device::StreamRef stream) {
  optimizer_.update_weights_from_masters(stream);
  outer_.begin(stream);
  for (std::size_t segment = 0; segment < parameters_.layout().segments.size(); ++segment) {
    seams_.weights_updated(segment, stream);
  }
}

void StepRunner::record_into(StepRecorder* recorder) {
  recorder_ = recorder;
  pipeline_.record_into(recorder == nullptr ? nullptr : &recorder->actions());
  seams_.record_into(recorder == nullptr ? nullptr : &recorder->collectives());
}

void StepRunner::note_end(StepPart part, device::StreamRef stream) {
  if (recorder_ != nullptr) {
    recorder_->end(part, stream);
  }
}

void StepRunner::reduce_losses(device::StreamRef stream) {
  loss_reduction_ = mesh_->data_plane().all_reduce(loss_sum_, comm::ReduceOp::sum, stream);
  seams_.finish_gradients(stream);
  if (comm::Communicator& pp = mesh_->axis(comm::Axis::pp); pp.size() > 1) {
    loss_reduction_.wait(stream);
    loss_reduction_ = pp.all_reduce(loss_sum_, comm::ReduceOp::sum, stream);
  }
}

void StepRunner::accumulate_gradients(const StepBatches& batches, device::StreamRef stream) {
  seams_.begin_step(stream, loss_scale_.scale());
  optimizer_.begin_step();
  device::zero(loss_sum_.data(), loss_sum_.bytes(), stream);
  const std::int64_t targets = outer_.in_use() ? batches.replica_targets : batches.targets;
  const float scale =
      targets > 0 ? static_cast<float>(loss_scale_.scale() / static_cast<double>(targets)) : 0.0F;
  pipeline_.train(
      batches.micro_batches, scale,
      [&](model::Stage& head, int slot) { kernels::sum(head.loss(slot), loss_sum_, true, stream); },
      stream);
}

void StepRunner::reduce_and_update(std::int64_t step, double lr, device::StreamRef stream) {
  const std::int64_t applied = step - loss_scale_.state().skipped_steps;
  Optimizer::Step update{.update = applied + 1, .lr = lr, .gradient_scale = nullptr};
  const bool norm_decides = clip_norm_ > 0 || loss_scale_.in_use();
  if (norm_decides) {
    for (const std::size_t segment : order_) {
      seams_.wait_gradients(segment, stream);
    }
    note_end(StepPart::reduce, stream);
    find_norm(stream);
    update.gradient_scale = gradient_scale_.as<float>();
  }
  for (const std::size_t segment : order_) {
    if (!norm_decides) {
      seams_.wait_gradients(segment, stream);
    }
    if (const parallel::ParameterShare::Run* const run = share_.find(segment)) {
      optimizer_.update(*run, update, stream);
    }
    if (!outer_.ends_round(step + 1)) {  // else they will change again
      seams_.weights_updated(segment, stream);
    }
  }
  if (!norm_decides) {
    note_end(StepPart::reduce, stream);
    find_norm(stream);
  }
}

void StepRunner::find_norm(device::StreamRef stream) {
  device::zero(sum_of_squares_.data(), sum_of_squares_.bytes(), stream);
  for (const TensorView& gradient : counted_) {
    kernels::sum_of_squares(gradient, sum_of_squares_, true, stream);
  }
  for (comm::Communicator* const ranks :
       {&seams_.shard_group(), &mesh_->axis(comm::Axis::tp), &mesh_->axis(comm::Axis::pp)}) {
    if (ranks->size() > 1) {
      ranks->all_reduce(sum_of_squares_, comm::ReduceOp::sum, stream).wait(stream);
    }
  }
  kernels::clip_scale(sum_of_squares_, static_cast<float>(clip_norm_),
                      static_cast<float>(loss_scale_.scale()), norm_, gradient_scale_, stream);
  if (outer_.in_use()) {
    agree_on_norm(stream);
  }
}

void StepRunner::agree_on_norm(device::StreamRef stream) {
  norm_reduction_ = mesh_->axis(comm::Axis::dp).all_reduce(norm_, comm::ReduceOp::avg, stream);
  if (loss_scale_.in_use()) {
    norm_reduction_.wait(stream);
    norm_reduction_ = comm::Work{};
    kernels::void_scale(norm_, gradient_scale_, stream);
  }
}

ForwardPass StepRunner::forward_pass() {
  return {[this](const model::Batch& batch, device::StreamRef stream) {
            pipeline_.forward_evaluate(batch, stream);
          },
          pipeline_.head()};
}

StepOutcome StepRunner::outcome(device::StreamRef stream) {
  loss_reduction_.wait(stream);
  norm_reduction_.wait(stream);
  norm_reduction_ = comm::Work{};
  double loss_sum = 0;
  float norm = 0;
  device::copy(&loss_sum, loss_sum_.data(), sizeof loss_sum, stream);
  device::copy(&norm, norm_.data(), sizeof norm, stream);
  stream.synchronize();
  StepOutcome outcome{.loss = targets_ > 0 ? loss_sum / static_cast<double>(targets_) : 0,
                      .grad_norm = static_cast<double>(norm),
                      .loss_scale = loss_scale_.scale()};
  outcome.fate = loss_scale_.settle(std::isfinite(norm));
  seams_.settle(outcome.fate == StepFate::applied);
  return outcome;
}

}  // namespace fourfold::train
