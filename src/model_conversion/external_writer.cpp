// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_writer.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <algorithm>
#include <optional>

namespace fourfold::model_conversion {
namespace {

std::int64_t padding_elements(const ExternalTensor& tensor) {
  std::int64_t elements = tensor.shape.elements();
  for (const Part& part : tensor.parts) {
    elements -= part.place.elements();
  }
  return elements;
}

/// `common`, a box of their tensor, in coordinates of the part.
Box our_box(const Part& part, const Box& common) {
  Box result = common;
  for (std::size_t dim = 0; dim < common.rank(); ++dim) {
    const std::size_t theirs = part.transposed ? common.rank() - 1 - dim : dim;
    result.offset[dim] = common.offset[theirs] - part.place.offset[theirs];
    result.extent[dim] = common.extent[theirs];
  }
  return result;
}

}  // namespace

ExternalWriter::ExternalWriter(io::TensorSource& source, DType dtype, std::int64_t memory_bytes)
    : source_(&source),
      dtype_(dtype),
      // Three buffers of at most this many elements, and what the source reads through.
      rows_elements_(std::max<std::int64_t>(memory_bytes / 4, 1 << 20) / 4) {}

void ExternalWriter::write(const ExternalTensor& tensor, const Sink& sink) {
  const std::int64_t rows = tensor.shape[0];
  const std::int64_t columns = tensor.shape.elements() / rows;
  const std::int64_t rows_at_once = std::clamp<std::int64_t>(rows_elements_ / columns, 1, rows);
  for (std::int64_t row = 0; row < rows; row += rows_at_once) {
    Box piece = Box::whole(tensor.shape);
    piece.offset[0] = row;
    piece.extent[0] = std::min(rows_at_once, rows - row);
    fill_rows(tensor, piece);
    if (dtype_ == DType::f32) {
      sink(std::as_bytes(std::span(rows_)));
      continue;
    }
    elements_.resize(rows_.size() * size_in_bytes(dtype_));
    if (const std::optional<float> value = narrow(rows_, dtype_, elements_)) {
      throw UserError(
          ExitCode::config,
          format_message(
              "--dtype {} is too narrow ({} holds {:g}, which overflows it); export as {}",
              name(dtype_), tensor.name, *value, dtype_ == DType::f16 ? "bf16 or f32" : "f32"));
    }
    sink(elements_);
  }
}

/// Their rows, padding as zeros, into rows_.
void ExternalWriter::fill_rows(const ExternalTensor& tensor, const Box& rows) {
  rows_.resize(rows.elements());
  if (padding_elements(tensor) > 0) {
    std::ranges::fill(rows_, 0.0F);
  }
  for (const Part& part : tensor.parts) {
    if (const std::optional<Box> common = intersect(rows, part.place)) {
      fill(part, *common, rows);
    }
  }
}

void ExternalWriter::fill(const Part& part, const Box& common, const Box& rows) {
  const Box ours = our_box(part, common);
  const io::TensorId id{part.name, io::TensorState::master};
  Shape from_start = common.offset;
  from_start[0] -= rows.offset[0];
  float* const target = rows_.data() + linear_index(rows.extent, from_start);
  const bool is_vector = rows.rank() == 1;
  if (!part.transposed && (is_vector || common.extent[1] == rows.extent[1])) {
    source_->read(id, ours, {target, ours.extent});
    return;
  }
  FOURFOLD_EXPECT(part.transposed && rows.rank() == 2);
  ours_.resize(ours.elements());
  source_->read(id, ours, {ours_.data(), ours.extent});
  transpose(ours_.data(), ours.extent[0], ours.extent[1], target, rows.extent[1]);
}

}  // namespace fourfold::model_conversion
