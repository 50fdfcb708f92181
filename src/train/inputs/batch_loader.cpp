// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/train/batch_loader.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::train {

// Neither room may include the other.
static_assert(data::ignored_target == kernels::ignored_target);

HeldTokens held_tokens(const comm::Mesh& mesh, std::int64_t context) {
  return parallel::context_chunks(context, mesh.shape().cp, mesh.coordinate().cp);
}

MicroBatchBuffer::MicroBatchBuffer(std::int64_t sequences, std::int64_t context,
                                   const HeldTokens& held, device::Arena& arena)
    : held_(held),
      tokens_(held[0].count + held[1].count),
      memory_(arena, device::MemoryUse::workspace, sequences * tokens_, {}) {
  if (arena.has_memory()) {
    make_host_images(context);
  }
}

void MicroBatchBuffer::make_host_images(std::int64_t context) {
  whole_token_.resize(tokens_ == context ? 0 : context);
  whole_target_.resize(whole_token_.size());
  const auto image_of = [](TensorView x) {
    return device::Tensor(x.dtype(), x.shape(), device::MemoryKind::pinned);
  };
  host_token_ = image_of(memory_.token_N);
  host_target_ = image_of(memory_.target_N);
  host_sample_ = image_of(memory_.sample_N);
  std::vector<std::int32_t> positions(memory_.position_N.elements());
  auto position = positions.begin();
  while (position != positions.end()) {
    for (const Range& chunk : held_) {
      std::iota(position, position + chunk.count, chunk.begin);
      position += chunk.count;
    }
  }
  device::copy(memory_.position_N.data(), positions.data(), memory_.position_N.bytes(), {});
}

std::int64_t MicroBatchBuffer::read_sample(const data::TokenDataset& dataset, std::int64_t sample,
                                           std::span<std::int32_t> token,
                                           std::span<std::int32_t> target) {
  if (whole_token_.empty()) {
    return dataset.fill(sample, token, target);
  }
  dataset.fill(sample, whole_token_, whole_target_);
  auto to_token = token.begin();
  auto to_target = target.begin();
  for (const Range& chunk : held_) {
    to_token = std::copy_n(whole_token_.begin() + chunk.begin, chunk.count, to_token);
    to_target = std::copy_n(whole_target_.begin() + chunk.begin, chunk.count, to_target);
  }
  return std::ranges::count_if(target, [](std::int32_t x) { return x != data::ignored_target; });
}

std::int64_t MicroBatchBuffer::fill(const data::TokenDataset& dataset, Range samples,
                                    std::int64_t step, device::StreamRef stream) {
  const std::int64_t rows = samples.count * tokens_;
  FOURFOLD_EXPECT(rows <= memory_.token_N.elements());
  copies_.ref().synchronize();  // of the last call: it may be a step that is still under way
  std::int64_t valid = 0;
  for (std::int64_t i = 0; i < samples.count; ++i) {
    const std::int64_t first = i * tokens_;
    const std::size_t count = tokens_;
    valid += read_sample(dataset, samples.begin + i,
                         std::span(host_token_.as<std::int32_t>() + first, count),
                         std::span(host_target_.as<std::int32_t>() + first, count));
    std::fill_n(host_sample_.as<std::int64_t>() + first, count, samples.begin + i);
  }
  read_.record(stream);
  read_.wait(copies_);
  batch_ = memory_.copy({.sequences = samples.count,
                         .tokens = tokens_,
                         .token_N = host_token_.view().rows(0, rows),
                         .target_N = host_target_.view().rows(0, rows),
                         .sample_N = host_sample_.view().rows(0, rows),
                         .step = step},
                        copies_);
  batch_.position_N = memory_.position_N.rows(0, rows);
  arrived_.record(copies_);
  arrived_.wait(stream);
  return valid;
}

BatchLoader::BatchLoader(const data::TokenDataset& dataset, const data::BatchPlan& plan,
                         int dp_rank, const HeldTokens& held, device::Arena& arena)
    : dataset_(&dataset), plan_(plan), dp_rank_(dp_rank) {
  FOURFOLD_EXPECT(plan.valid());
  for (std::int64_t i = 0; i < plan.accumulation_steps(); ++i) {
    buffers_.emplace_back(plan.micro_batch, dataset.context(), held, arena);
  }
  batches_.resize(buffers_.size());
}

StepBatches BatchLoader::load(std::int64_t step, std::int64_t first_sample,
                              device::StreamRef stream) {
  for (std::int64_t i = 0; i < std::ssize(buffers_); ++i) {
    const Range samples = plan_.micro_batch_samples(first_sample, dp_rank_, i);
    buffers_[i].fill(*dataset_, samples, step, stream);
    batches_[i] = buffers_[i].batch();
    for (std::int64_t sample = samples.begin; sample < samples.end(); ++sample) {
      dataset_->prefetch(sample + plan_.global_batch);
    }
  }
  const std::int64_t mine = plan_.samples_per_rank();
  return {batches_, targets_of({first_sample, plan_.global_batch}),
          targets_of({first_sample + dp_rank_ * mine, mine})};
}

std::int64_t BatchLoader::targets_of(Range samples) const {
  const std::int64_t last_position = dataset_->samples() - 1;
  const std::int64_t ragged_targets = dataset_->tokens() - 1 - last_position * dataset_->context();
  std::int64_t targets = 0;
  for (std::int64_t sample = samples.begin; sample < samples.end(); ++sample) {
    const bool ragged = dataset_->position(sample) == last_position;
    targets += ragged ? ragged_targets : dataset_->context();
  }
  return targets;
}

data::TokenDataset::Options dataset_options(const runfile::RunConfig& config,
                                            data::TokenDataset::Order order) {
  return {.context = config.model.context,
          .vocab = config.model.vocab,
          .seed = static_cast<std::uint64_t>(config.train.seed),
          .order = order};
}

data::BatchPlan batch_plan(const runfile::RunConfig& config, const comm::MeshShape& mesh) {
  return {.global_batch = config.train.global_batch,
          .micro_batch = config.train.micro_batch,
          .dp = mesh.dp};
}

}  // namespace fourfold::train
