// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "external_writer.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/model_conversion/external_source.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fourfold::model_conversion {
namespace {

constexpr std::int64_t piece_elements = std::int64_t{1} << 20;
constexpr std::size_t window_bytes = std::size_t{4} << 20;
/// Runs shorter than this are read together with what lies between them.
constexpr std::size_t long_run_bytes = std::size_t{64} << 10;

const io::StoredArray& checked(const io::StoredArray* array, const ExternalTensor& tensor) {
  if (array == nullptr) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("the tensor {} is missing (the model has one of shape {}); "
                                   "fetch or make the files again",
                                   tensor.name, tensor.shape.str()));
  }
  if (!(array->shape() == tensor.shape)) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message(
            "{}: {} has the shape {}, and by the sizes of the model's configuration (such as "
            "config.json) it has {}; configuration and weights are not of one model",
            array->path().string(), printable(array->name()), array->shape().str(),
            tensor.shape.str()));
  }
  if (!array->dtype() || !is_floating(*array->dtype())) {
    throw UserError(
        ExitCode::config,
        format_message("{}: {} is of type {} (f32, f64, bf16 and f16 can be imported); convert the "
                       "model to one of them",
                       array->path().string(), printable(array->name()), printable(array->type())));
  }
  return *array;
}

/// A box of ours, in coordinates of the tensor that it is part of.
Box their_box(const Part& part, const Box& box) {
  Box result = box;
  for (std::size_t dim = 0; dim < box.rank(); ++dim) {
    const std::size_t ours = part.transposed ? box.rank() - 1 - dim : dim;
    result.offset[dim] = part.place.offset[dim] + box.offset[ours];
    result.extent[dim] = box.extent[ours];
  }
  return result;
}

}  // namespace

ExternalSource::ExternalSource(
    std::vector<ExternalTensor> tensors,
    const std::function<const io::StoredArray*(const std::string& name)>& find) {
  for (ExternalTensor& tensor : tensors) {
    const io::StoredArray& array = checked(find(tensor.name), tensor);
    for (Part& part : tensor.parts) {
      std::string name = part.name;
      places_.emplace(std::move(name), Place{array, std::move(part)});
    }
  }
}

void ExternalSource::read(const io::TensorId& id, const Box& box, TensorView target) {
  const auto found = places_.find(id.name);
  FOURFOLD_EXPECT(found != places_.end() && id.state == io::TensorState::master);
  FOURFOLD_EXPECT(target.dtype() == DType::f32 && target.elements() == box.elements());
  if (box.empty()) {
    return;
  }
  const Place& place = found->second;
  const Box theirs = their_box(place.part, box);
  const std::int64_t rows = theirs.extent[0];
  const std::int64_t columns = theirs.elements() / rows;
  const std::int64_t rows_at_once = std::clamp<std::int64_t>(piece_elements / columns, 1, rows);
  float* const values = target.as<float>();
  for (std::int64_t row = 0; row < rows; row += rows_at_once) {
    Box piece = theirs;
    piece.offset[0] += row;
    piece.extent[0] = std::min(rows_at_once, rows - row);
    if (!place.part.transposed) {
      read_rows(place, piece, values + row * columns);
      continue;
    }
    values_.resize(piece.elements());
    read_rows(place, piece, values_.data());
    transpose(values_.data(), piece.extent[0], columns, values + row, rows);
  }
}

/// A box of a tensor as it lies in the file, widened.
void ExternalSource::read_rows(const Place& place, const Box& theirs, float* values) {
  const DType dtype = *place.array.dtype();
  const std::size_t size = size_in_bytes(dtype);
  const std::size_t count = theirs.elements();
  elements_.resize(count * size);
  std::uint64_t window_begin = 0;
  std::uint64_t window_end = 0;
  const Box whole = Box::whole(place.array.shape());
  Shape last = theirs.offset;
  for (std::size_t dim = 0; dim < last.rank(); ++dim) {
    last[dim] += theirs.extent[dim] - 1;
  }
  const std::uint64_t box_end = (linear_index(whole.extent, last) + 1) * size;
  for_each_run(whole, theirs, theirs, [&](const Run& run) {
    const std::uint64_t begin = run.source_element * size;
    const std::size_t bytes = run.elements * size;
    std::byte* const to = elements_.data() + run.target_element * size;
    if (bytes >= long_run_bytes) {
      place.array.read(begin, {to, bytes});
      return;
    }
    if (begin < window_begin || begin + bytes > window_end) {
      window_.resize(std::min<std::uint64_t>(window_bytes, box_end - begin));
      place.array.read(begin, window_);
      window_begin = begin;
      window_end = begin + window_.size();
    }
    std::memcpy(to, window_.data() + (begin - window_begin), bytes);
  });
  if (const std::optional<double> value = widen(elements_, dtype, {values, count})) {
    throw UserError(
        ExitCode::config,
        format_message("{}: tensor {} holds {:g}, which overflows f32, in which weights are kept; "
                       "train it to smaller values, or clip them",
                       place.array.path().string(), printable(place.array.name()), *value));
  }
}

}  // namespace fourfold::model_conversion
