// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/data/sample_order.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/io/array_file.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/model/stage.hpp>
#include <fourfold/train/evaluator.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::evaluate {

/// What `fourfold evaluate --logits` leaves behind. Legend: S samples, T tokens of each, V
/// vocabulary. /tokens and /targets i32 [S, T] (targets: -100 where there is none), /logits f32
/// [S, T, V]: row (s, t) predicts target (s, t).
class LogitsFile {
 public:
  /// Collective over `world`. @param dataset  in sequential order; borrowed
  LogitsFile(const std::filesystem::path& path, const io::Checkpoint& checkpoint,
             const data::TokenDataset& dataset, std::int64_t samples, std::int64_t vocab,
             comm::Communicator& world);

  /// Writes what slot 0 of `stage` has just computed for `samples`. Local; blocks.
  void add(Range samples, const model::Stage& stage);
  /// Collective.
  void publish() { file_.publish(); }

 private:
  const data::TokenDataset* dataset_;
  std::int64_t vocab_;
  io::ArrayFile file_;
  device::Tensor widened_TV_;  ///< one sample
  std::vector<float> host_TV_;
};

/// What `fourfold evaluate` says.
struct Report {
  std::string checkpoint;
  std::int64_t step = 0;
  train::Evaluation evaluation;
  std::int64_t samples = 0;
  double seconds = 0;
};

/// One JSON object; numbers to full precision.
std::string to_json(const Report& report);

}  // namespace fourfold::evaluate
