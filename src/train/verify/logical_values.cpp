// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "logical_values.hpp"

#include "tensor_difference.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace fourfold::train {
namespace {

std::size_t index_of(const std::vector<model::ParameterSpec>& table, const std::string& name) {
  const auto spec = std::ranges::find(table, name, &model::ParameterSpec::name);
  FOURFOLD_ASSERT(spec != table.end());
  return spec - table.begin();
}

}  // namespace

LogicalValues::LogicalValues(const std::vector<model::ParameterSpec>& table, std::string what)
    : table_(&table), what_(std::move(what)) {
  for (const model::ParameterSpec& spec : table) {
    const std::size_t elements = spec.shape.elements();
    values_.emplace_back(elements, std::numeric_limits<float>::quiet_NaN());
    first_holder_.emplace_back(elements, -1);
  }
}

void LogicalValues::add(const parallel::ParameterShard& share,
                        TensorView parallel::ParameterShard::Piece::*part, int rank,
                        device::StreamRef stream) {
  for (const parallel::ParameterShard::Piece& piece : share.pieces()) {
    const TensorView view = piece.*part;
    std::vector<float> values(view.elements());
    device::copy(values.data(), view.data(), view.bytes(), stream);
    stream.synchronize();
    const std::size_t tensor = index_of(*table_, piece.parameter->spec.name);
    const std::lock_guard lock(mutex_);
    add_box(tensor, piece.box, values, rank);
  }
}

void LogicalValues::add_box(std::size_t tensor, const Box& box, const std::vector<float>& values,
                            int rank) {
  const Shape& shape = (*table_)[tensor].shape;
  const Box whole = Box::whole(shape);
  std::vector<float>& target = values_[tensor];
  std::vector<int>& holder = first_holder_[tensor];
  int other = -1;
  for_each_run(box, whole, box, [&](const Run& run) {
    for (std::int64_t i = 0; i < run.elements; ++i) {
      const float value = values[run.source_element + i];
      const std::size_t at = run.target_element + i;
      if (holder[at] < 0) {
        target[at] = value;
        holder[at] = rank;
      } else if (!same_bits(target[at], value)) {
        other = holder[at];
      }
    }
  });
  if (other >= 0) {
    disagreements_.push_back(fmt::format("ranks {} and {} hold different bits of the {} of {}",
                                         std::min(rank, other), std::max(rank, other), what_,
                                         (*table_)[tensor].name));
  }
}

ParameterValues LogicalValues::take(std::vector<std::string>& disagreements) {
  for (std::size_t tensor = 0; tensor < values_.size(); ++tensor) {
    const auto missing = std::count(first_holder_[tensor].begin(), first_holder_[tensor].end(), -1);
    if (missing > 0) {
      disagreements_.push_back(fmt::format("no rank holds {} elements of the {} of {}", missing,
                                           what_, (*table_)[tensor].name));
    }
  }
  disagreements.insert(disagreements.end(), disagreements_.begin(), disagreements_.end());
  return std::move(values_);
}

void put_masters(const ParameterValues& values, const std::vector<model::ParameterSpec>& table,
                 const parallel::ParameterShard& share, device::StreamRef stream) {
  FOURFOLD_EXPECT(values.size() == table.size());
  for (const parallel::ParameterShard::Piece& piece : share.pieces()) {
    const std::size_t tensor = index_of(table, piece.parameter->spec.name);
    const std::vector<float>& whole = values[tensor];
    FOURFOLD_EXPECT(std::ssize(whole) == table[tensor].shape.elements());
    std::vector<float> part(piece.master.elements());
    for_each_run(piece.box, Box::whole(table[tensor].shape), piece.box, [&](const Run& run) {
      std::copy_n(whole.begin() + run.target_element, run.elements,
                  part.begin() + run.source_element);
    });
    device::copy(piece.master.data(), part.data(), piece.master.bytes(), stream);
    stream.synchronize();  // before the part is gone
  }
}

}  // namespace fourfold::train
