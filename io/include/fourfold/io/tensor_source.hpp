// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tensors that are read box by box, wherever they lie and however they are cut there: what tools
/// that must not hold a whole model in memory read from.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/io/checkpoint.hpp>

#include <cstdint>
#include <memory>

namespace fourfold::io {

class ExtentReader;

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  TensorSource() = default;
  TensorSource(const TensorSource&) = delete;
  TensorSource& operator=(const TensorSource&) = delete;

  /// Fills `target`, dense host memory, with `box` of a logical tensor, in its dtype. Blocks.
  /// @pre the tensor is there, and box lies in it; target has its elements and dtype
  /// @throws UserError (data_corrupt) naming file and place when it cannot be had
  virtual void read(const TensorId& id, const Box& box, TensorView target) = 0;
};

/// The tensors of a checkpoint of any mesh. Every chunk of 4 MiB that a box touches is read and its
/// CRC checked. One thread at a time.
class CheckpointSource final : public TensorSource {
 public:
  explicit CheckpointSource(Checkpoint checkpoint);
  ~CheckpointSource() override;

  const Checkpoint& checkpoint() const noexcept { return checkpoint_; }
  void read(const TensorId& id, const Box& box, TensorView target) override;
  /// Of payload files so far.
  std::int64_t bytes_read() const noexcept;

 private:
  Checkpoint checkpoint_;
  std::unique_ptr<ExtentReader> reader_;
};

}  // namespace fourfold::io
