// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/model/parameters.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::model {
namespace {

constexpr std::int64_t alignment_elements = 16;  // 64 bytes of f32: a cache line, a vector

std::int64_t aligned(std::int64_t element) {
  return (element + alignment_elements - 1) / alignment_elements * alignment_elements;
}

/// Where each parameter lies in the flat memory.
struct Layout {
  std::vector<Range> ranges;  ///< by table index
  std::vector<UnitMemory> units;
  std::int64_t elements = 0;
};

/// Places the parameters [first, last) of one unit that decay, or those that do not.
void place(std::span<const ParameterSpec> table, std::span<const Box> boxes, std::size_t first,
           std::size_t last, bool decays, Layout& layout) {
  const std::int64_t begin = layout.elements;
  for (std::size_t i = first; i < last; ++i) {
    if (table[i].decays != decays) {
      continue;
    }
    const std::int64_t start = table[i].follows ? layout.elements : aligned(layout.elements);
    layout.ranges[i] = {start, boxes[i].elements()};
    layout.elements = layout.ranges[i].end();
  }
  layout.elements = aligned(layout.elements);
  if (layout.elements > begin) {
    UnitMemory& unit = layout.units.back();
    unit.decay_ranges.push_back({{begin, layout.elements - begin}, decays});
  }
}

Layout lay_out(std::span<const ParameterSpec> table, std::span<const Box> boxes) {
  FOURFOLD_EXPECT(table.size() == boxes.size());
  Layout layout;
  layout.ranges.resize(table.size());
  for (std::size_t first = 0; first < table.size();) {
    std::size_t last = first;
    while (last < table.size() && table[last].unit == table[first].unit) {
      ++last;
    }
    FOURFOLD_EXPECT(layout.units.empty() || layout.units.back().unit < table[first].unit);
    const std::int64_t begin = layout.elements;
    layout.units.push_back({table[first].unit, {}, {}});
    place(table, boxes, first, last, true, layout);
    place(table, boxes, first, last, false, layout);
    layout.units.back().flat = {begin, layout.elements - begin};
    first = last;
  }
  return layout;
}

TensorView part(TensorView flat, Range range, const Shape& shape) {
  return flat.rows(range.begin, range.count).reshape(shape);
}

std::vector<Box> whole_boxes(const std::vector<ParameterSpec>& table) {
  std::vector<Box> boxes;
  boxes.reserve(table.size());
  for (const ParameterSpec& spec : table) {
    boxes.push_back(Box::whole(spec.shape));
  }
  return boxes;
}

}  // namespace

Parameters::Parameters(std::vector<ParameterSpec> table, std::span<const Box> boxes, DType compute,
                       device::Arena& arena)
    : compute_(compute) {
  FOURFOLD_EXPECT(compute == DType::f32 || compute == DType::bf16 || compute == DType::f16);
  Layout layout = lay_out(table, boxes);
  const Shape flat{layout.elements};
  weights_ = arena.take(device::MemoryUse::weights, compute, flat);
  masters_ =
      compute == DType::f32 ? weights_ : arena.take(device::MemoryUse::optimizer, DType::f32, flat);
  gradients_ = arena.take(device::MemoryUse::gradients, DType::f32, flat);
  units_ = std::move(layout.units);
  parameters_.reserve(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    FOURFOLD_EXPECT(contains(Box::whole(table[i].shape), boxes[i]));
    const Range range = layout.ranges[i];
    const Shape& shape = boxes[i].extent;
    parameters_.push_back({std::move(table[i]), boxes[i], part(weights_, range, shape),
                           part(masters_, range, shape), part(gradients_, range, shape), range});
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
  device::zero(gradients_.data(), gradients_.bytes(), stream);
}

void Parameters::update_weights_from_masters(device::StreamRef stream) const {
  if (weights_.data() != masters_.data()) {
    kernels::cast(masters_, weights_, stream);
  }
}

std::int64_t flat_elements(std::span<const ParameterSpec> table, std::span<const Box> boxes) {
  return lay_out(table, boxes).elements;
}

namespace {

/// The part `box` of the initial values of one parameter, dense.
std::vector<float> initial_values(const ParameterSpec& spec, const Box& box, std::uint64_t seed) {
  std::vector<float> values(static_cast<std::size_t>(box.elements()),
                            spec.init == Init::ones ? 1.0F : 0.0F);
  if (spec.init != Init::normal) {
    return values;
  }
  const PhiloxKey key =
      philox_key(seed, RandomUse::initial_weight, name_salt(spec.name.data(), spec.name.size()));
  for_each_run(Box::whole(spec.shape), box, box, [&](const Run& run) {
    for (std::int64_t i = 0; i < run.elements; ++i) {
      values[static_cast<std::size_t>(run.target_element + i)] =
          spec.init_std * normal_float(key, static_cast<std::uint64_t>(run.source_element + i));
    }
  });
  return values;
}

}  // namespace

void initialise(const Parameters& parameters, std::uint64_t seed, device::StreamRef stream) {
  for (const Parameter& parameter : parameters) {
    const std::vector<float> values = initial_values(parameter.spec, parameter.box, seed);
    device::copy(parameter.master.data(), values.data(), parameter.master.bytes(), stream);
    stream.synchronize();  // `values` dies here
  }
  parameters.update_weights_from_masters(stream);
}

}  // namespace fourfold::model
