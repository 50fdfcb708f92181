// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/dtype.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_diff.hpp>
#include <fourfold/io/tensor_source.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

namespace fourfold::io {
namespace {

using Kind = TensorDifference::Kind;

template <class Value>
bool same(const Value& a, const Value& b) {
  return a == b;
}
bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

template <class Value>
void compare_scalars(const std::map<std::string, Value, std::less<>>& a,
                     const std::map<std::string, Value, std::less<>>& b,
                     std::vector<std::string>& lines) {
  std::set<std::string> names;
  for (const auto* side : {&a, &b}) {
    for (const auto& [name, value] : *side) {
      names.insert(name);
    }
  }
  for (const std::string& name : names) {
    const auto in_a = a.find(name);
    const auto in_b = b.find(name);
    if (in_a == a.end() || in_b == b.end()) {
      lines.push_back(format_message("{} is only in {}", name, in_a == a.end() ? "b" : "a"));
    } else if (!same(in_a->second, in_b->second)) {
      lines.push_back(format_message("{}: {} and {}", name, in_a->second, in_b->second));
    }
  }
}

std::string type_of(const StoredTensor& tensor) {
  return fmt::format("{} {}", name(tensor.dtype), tensor.shape.str());
}

/// All that digests, names and types tell.
std::vector<TensorDifference> compare_tensors(const Checkpoint& a, const Checkpoint& b) {
  std::vector<TensorDifference> differences;
  for (const StoredTensor& tensor : a.tensors()) {
    const StoredTensor* const other = b.find(tensor.id);
    if (other == nullptr) {
      differences.push_back(
          {.id = tensor.id, .kind = Kind::only_in_a, .detail = {}, .largest = {}});
    } else if (other->dtype != tensor.dtype || other->shape != tensor.shape) {
      differences.push_back({.id = tensor.id,
                             .kind = Kind::other_type,
                             .detail = fmt::format("{} and {}", type_of(tensor), type_of(*other)),
                             .largest = {}});
    } else if (other->digest != tensor.digest) {
      differences.push_back({.id = tensor.id,
                             .kind = Kind::other_values,
                             .detail = {},
                             .elements = tensor.shape.elements(),
                             .largest = {}});
    }
  }
  for (const StoredTensor& tensor : b.tensors()) {
    if (a.find(tensor.id) == nullptr) {
      differences.push_back(
          {.id = tensor.id, .kind = Kind::only_in_b, .detail = {}, .largest = {}});
    }
  }
  std::ranges::sort(differences, {}, &TensorDifference::id);
  return differences;
}

template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

/// Coordinates in the tensor of the `element`-th element of a box.
std::vector<std::int64_t> index_in_tensor(const Box& box, std::int64_t element) {
  std::vector<std::int64_t> index(box.rank());
  for (std::size_t dim = box.rank(); dim-- > 0;) {
    index[dim] = box.offset[dim] + element % box.extent[dim];
    element /= box.extent[dim];
  }
  return index;
}

/// What order the largest differences have: those that are no number first.
double size_of(const ElementPair& pair) {
  const double size = std::abs(pair.a - pair.b);
  return std::isnan(size) ? std::numeric_limits<double>::infinity() : size;
}

/// @param most  elements to name
void note(const Box& box, std::int64_t element, double a, double b, std::size_t most,
          TensorDifference& difference) {
  const double size = size_of({{}, a, b});
  ++difference.different;
  difference.max_abs = std::max(difference.max_abs, size);
  difference.rms += size * size;  // their sum, until all have been noted
  std::vector<ElementPair>& largest = difference.largest;
  if (largest.size() == most && (most == 0 || size <= size_of(largest.back()))) {
    return;
  }
  const auto after = std::ranges::find_if(
      largest, [&](const ElementPair& other) { return size_of(other) < size; });
  largest.insert(after, {index_in_tensor(box, element), a, b});
  if (largest.size() > most) {
    largest.pop_back();
  }
}

/// @param a, b  the elements of `box`, dense
template <class T>
void note_elements(const Box& box, const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                   std::size_t most, TensorDifference& difference) {
  for (std::int64_t element = 0; element < box.elements(); ++element) {
    const std::size_t at = element * sizeof(T);
    if (std::memcmp(a.data() + at, b.data() + at, sizeof(T)) == 0) {
      continue;
    }
    T x;
    T y;
    std::memcpy(&x, a.data() + at, sizeof(T));
    std::memcpy(&y, b.data() + at, sizeof(T));
    note(box, element, as_double(x), as_double(y), most, difference);
  }
}

auto* note_elements_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return note_elements<float>;
    case DType::bf16:
      return note_elements<BFloat16>;
    case DType::f16:
      return note_elements<Float16>;
    case DType::f64:
      return note_elements<double>;
    case DType::i32:
      return note_elements<std::int32_t>;
    case DType::i64:
      return note_elements<std::int64_t>;
    case DType::u8:
      return note_elements<std::uint8_t>;
    case DType::u16:
      return note_elements<std::uint16_t>;
    case DType::u32:
      return note_elements<std::uint32_t>;
    case DType::u64:
      break;
  }
  return note_elements<std::uint64_t>;
}

void compare_elements(CheckpointSource& a, CheckpointSource& b, const DiffOptions& options,
                      const std::function<void(std::int64_t bytes)>& on_read,
                      TensorDifference& difference) {
  const StoredTensor& tensor = *a.checkpoint().find(difference.id);
  const std::int64_t element_bytes = size_in_bytes(tensor.dtype);
  const std::int64_t most = std::max<std::int64_t>(1, options.memory_bytes / (2 * element_bytes));
  std::vector<std::byte> bytes_a;
  std::vector<std::byte> bytes_b;
  for (std::int64_t begin = 0; begin < tensor.shape.elements(); begin += most) {
    const std::int64_t count = std::min(most, tensor.shape.elements() - begin);
    for (const Box& box : boxes_of_flat_range(tensor.shape, {begin, count})) {
      bytes_a.resize(box.elements() * element_bytes);
      bytes_b.resize(bytes_a.size());
      a.read(tensor.id, box, TensorView(bytes_a.data(), tensor.dtype, box.extent));
      b.read(tensor.id, box, TensorView(bytes_b.data(), tensor.dtype, box.extent));
      note_elements_of(tensor.dtype)(box, bytes_a, bytes_b, options.largest, difference);
    }
    on_read(2 * count * element_bytes);
  }
  if (difference.different == 0) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("tensor {} has the same elements in both, but other digests "
                                   "(one of {} and {} is damaged); verify both",
                                   tensor.id.str(), a.checkpoint().path().string(),
                                   b.checkpoint().path().string()));
  }
  difference.rms = std::sqrt(difference.rms / static_cast<double>(difference.elements));
}

}  // namespace

CheckpointDifferences compare(const Checkpoint& a, const Checkpoint& b,
                              const DiffOptions& options) {
  CheckpointDifferences differences;
  if (a.step() != b.step()) {
    differences.scalars.push_back(fmt::format("step: {} and {}", a.step(), b.step()));
  }
  compare_scalars(a.scalars().integers, b.scalars().integers, differences.scalars);
  compare_scalars(a.scalars().reals, b.scalars().reals, differences.scalars);
  differences.tensors = compare_tensors(a, b);
  if (!options.elements) {
    return differences;
  }
  std::int64_t total_bytes = 0;
  for (const TensorDifference& difference : differences.tensors) {
    if (difference.kind == Kind::other_values) {
      total_bytes += 2 * payload_bytes(*a.find(difference.id));
    }
  }
  std::int64_t done_bytes = 0;
  const auto on_read = [&](std::int64_t bytes) {
    done_bytes += bytes;
    if (options.progress) {
      options.progress(done_bytes, total_bytes);
    }
  };
  CheckpointSource source_a(a);
  CheckpointSource source_b(b);
  for (TensorDifference& difference : differences.tensors) {
    if (difference.kind == Kind::other_values) {
      compare_elements(source_a, source_b, options, on_read, difference);
    }
  }
  return differences;
}

}  // namespace fourfold::io
