// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "logits_file.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>

#include <string>

namespace fourfold::evaluate {

LogitsFile::LogitsFile(const std::filesystem::path& path, const io::Checkpoint& checkpoint,
                       const data::TokenDataset& dataset, std::int64_t samples, std::int64_t vocab,
                       comm::Communicator& world)
    : dataset_(&dataset),
      vocab_(vocab),
      file_(path,
            {{"/logits", DType::f32, {samples, dataset.context(), vocab}},
             {"/targets", DType::i32, {samples, dataset.context()}},
             {"/tokens", DType::i32, {samples, dataset.context()}}},
            {{"format", "fourfold logits 1"},
             {"checkpoint", checkpoint.path().string()},
             {"step", std::to_string(checkpoint.step())}},
            world),
      widened_TV_(DType::f32, {dataset.context(), vocab}),
      host_TV_(dataset.context() * vocab) {}

void LogitsFile::add(Range samples, const model::Stage& stage) {
  const std::int64_t context = dataset_->context();
  std::vector<std::int32_t> token(context);
  std::vector<std::int32_t> target(token.size());
  const device::StreamRef stream;
  for (std::int64_t row = 0; row < samples.count; ++row) {
    const std::int64_t sample = samples.begin + row;
    dataset_->fill(sample, token, target);
    kernels::cast(stage.logits(0).rows(row * context, context), widened_TV_, stream);
    device::copy(host_TV_.data(), widened_TV_.view().data(), widened_TV_.view().bytes(), stream);
    stream.synchronize();
    file_.write_rows("/logits", sample, {host_TV_.data(), {1, context, vocab_}});
    file_.write_rows("/targets", sample, {target.data(), {1, context}});
    file_.write_rows("/tokens", sample, {token.data(), {1, context}});
  }
}

}  // namespace fourfold::evaluate
