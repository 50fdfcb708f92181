// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/cores.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/model/parameters.hpp>

#include <algorithm>
#include <span>
#include <utility>

namespace fourfold::model {
namespace {

/// Elements from `begin` to `end` of `values`, where runs in this order have their targets.
void draw_normal(std::span<const Run> runs, std::int64_t begin, std::int64_t end, PhiloxKey key,
                 float std, std::span<float> values) {
  auto run = std::ranges::partition_point(
      runs, [&](const Run& one) { return one.target_element + one.elements <= begin; });
  for (std::int64_t at = begin; at < end; ++run) {
    for (; at < std::min(end, run->target_element + run->elements); ++at) {
      const std::int64_t source = run->source_element + at - run->target_element;
      values[at] = std * normal_float(key, source);
    }
  }
}

}  // namespace

Parameters::Parameters(std::vector<ParameterSpec> table, std::span<const Box> boxes, DType compute,
                       device::Arena& arena, const ParameterMemory& memory)
    : compute_(compute),
      layout_(flat_layout(table, boxes, memory.tiles)),
      weights_(layout_, memory.weights, memory.blocks, device::MemoryUse::weights, compute, arena) {
  FOURFOLD_EXPECT(compute == DType::f32 || compute == DType::bf16 || compute == DType::f16);
  if (memory.masters) {
    FOURFOLD_EXPECT(memory.weights == MatrixMemory::whole);
    masters_ = compute == DType::f32
                   ? weights()
                   : arena.take(device::MemoryUse::optimizer, DType::f32, {layout_.elements});
  }
  gradients_ = FlatMemory(layout_, memory.gradients, memory.blocks, device::MemoryUse::gradients,
                          DType::f32, arena);
  parameters_.reserve(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    FOURFOLD_EXPECT(contains(Box::whole(table[i].shape), boxes[i]));
    const Range range = layout_.ranges[i];
    const Shape& shape = boxes[i].extent;
    const TensorView master =
        masters_ ? masters_.rows(range.begin, range.count).reshape(shape) : TensorView();
    const auto view_in = [&](const FlatMemory& part) {
      return part.holds(range) ? part.at(range).reshape(shape) : TensorView();
    };
    parameters_.push_back(
        {std::move(table[i]), boxes[i], view_in(weights_), master, view_in(gradients_), range});
  }
}

Parameters::Parameters(const std::vector<ParameterSpec>& table, DType compute, device::Arena& arena)
    : Parameters(table, whole_boxes(table), compute, arena) {}

const Parameter* Parameters::find(std::string_view name) const noexcept {
  const auto found = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const Parameter& p) { return p.spec.name == name; });
  return found == parameters_.end() ? nullptr : &*found;
}

const Parameter& Parameters::at(std::string_view name) const {
  const Parameter* found = find(name);
  FOURFOLD_EXPECT(found != nullptr);
  return *found;
}

void Parameters::zero_gradients(device::StreamRef stream) const {
  const TensorView all = gradients();
  device::zero(all.data(), all.bytes(), stream);
}

void Parameters::update_weights_from_masters(device::StreamRef stream) const {
  FOURFOLD_EXPECT(masters_);
  if (weights().data() != masters_.data()) {
    kernels::cast(masters_, weights(), stream);
  }
}

void draw_initial(const ParameterSpec& spec, const Box& box, std::uint64_t seed,
                  TensorView values_f32, device::StreamRef stream) {
  FOURFOLD_EXPECT(values_f32.dtype() == DType::f32 && values_f32.elements() == box.elements());
  std::vector<float> values(box.elements(), spec.init == Init::ones ? 1.0F : 0.0F);
  if (spec.init == Init::normal) {
    const PhiloxKey key =
        philox_key(seed, RandomUse::initial_weight, name_salt(spec.name.data(), spec.name.size()));
    std::vector<Run> runs;
    for_each_run(Box::whole(spec.shape), box, box, [&](const Run& run) { runs.push_back(run); });
    constexpr std::int64_t worth_a_thread = 1 << 14;  // half a millisecond
    share_among_cores(box.elements(), worth_a_thread, [&](std::int64_t begin, std::int64_t end) {
      draw_normal(runs, begin, end, key, spec.init_std, values);
    });
  }
  device::copy(values_f32.data(), values.data(), values_f32.bytes(), stream);
}

void initialise(const Parameters& parameters, std::uint64_t seed, device::StreamRef stream) {
  for (const Parameter& parameter : parameters) {
    draw_initial(parameter.spec, parameter.box, seed, parameter.master, stream);
  }
  parameters.update_weights_from_masters(stream);
}

}  // namespace fourfold::model
