// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/checkpoint_contents.hpp"
#include "load/extent_reader.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/tensor_source.hpp>

#include <utility>

namespace fourfold::io {

CheckpointSource::CheckpointSource(Checkpoint checkpoint)
    : checkpoint_(std::move(checkpoint)),
      reader_(std::make_unique<ExtentReader>(checkpoint_.contents())) {}

CheckpointSource::~CheckpointSource() = default;

std::int64_t CheckpointSource::bytes_read() const noexcept {
  return reader_->bytes_read();
}

void CheckpointSource::read(const TensorId& id, const Box& box, TensorView target) {
  const StoredTensor* const tensor = checkpoint_.find(id);
  FOURFOLD_EXPECT(tensor != nullptr && target.dtype() == tensor->dtype &&
                  target.elements() == box.elements());
  const std::size_t row = tensor - checkpoint_.contents().index.tensors.data();
  if (const Defect defect = reader_->copy_box(row, box, static_cast<std::byte*>(target.data()))) {
    throw UserError(ExitCode::data_corrupt, format_message("{} is damaged: {}; choose another step",
                                                           checkpoint_.path().string(), *defect));
  }
}

}  // namespace fourfold::io
