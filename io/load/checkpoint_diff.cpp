// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "load/extent_reader.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_diff.hpp>
#include <fourfold/io/tensor_source.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

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

/// One of the two, being read.
class Side {
 public:
  explicit Side(const Checkpoint& checkpoint) : source_(checkpoint) {}

  /// The elements of a box, until the next call.
  std::span<const std::byte> read(const StoredTensor& tensor, const Box& box) {
    bytes_.resize(box.elements() * size_in_bytes(tensor.dtype));
    source_.read(tensor.id, box, TensorView(bytes_.data(), tensor.dtype, box.extent));
    return bytes_;
  }

 private:
  CheckpointSource source_;
  std::vector<std::byte> bytes_;
};

class Comparison {
 public:
  Comparison(const Checkpoint& a, const Checkpoint& b, const DiffOptions& options,
             std::int64_t total_bytes)
      : a_(a), b_(b), side_a_(a), side_b_(b), options_(options), total_bytes_(total_bytes) {}

  void compare_elements(TensorDifference& difference) {
    const StoredTensor& tensor = *a_.find(difference.id);
    const std::int64_t element_bytes = size_in_bytes(tensor.dtype);
    const std::int64_t most =
        std::max<std::int64_t>(1, options_.memory_bytes / (2 * element_bytes));
    ElementDiff elements(difference, tensor.dtype, options_.largest);
    for (std::int64_t begin = 0; begin < tensor.shape.elements(); begin += most) {
      const std::int64_t count = std::min(most, tensor.shape.elements() - begin);
      for (const Box& box : boxes_of_flat_range(tensor.shape, {begin, count})) {
        elements.add(box, side_a_.read(tensor, box), side_b_.read(tensor, box));
        done_bytes_ += 2 * box.elements() * element_bytes;
      }
      if (options_.progress) {
        options_.progress(done_bytes_, total_bytes_);
      }
    }
    elements.finish();
    if (difference.different == 0) {
      throw UserError(
          ExitCode::data_corrupt,
          format_message("tensor {} has the same elements in both, but other digests (one "
                         "of {} and {} is damaged); verify both",
                         difference.id.str(), a_.path().string(), b_.path().string()));
    }
  }

 private:
  const Checkpoint& a_;
  const Checkpoint& b_;
  Side side_a_;
  Side side_b_;
  const DiffOptions& options_;
  std::int64_t total_bytes_;
  std::int64_t done_bytes_ = 0;
};

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
  Comparison comparison(a, b, options, total_bytes);
  for (TensorDifference& difference : differences.tensors) {
    if (difference.kind == Kind::other_values) {
      comparison.compare_elements(difference);
    }
  }
  return differences;
}

}  // namespace fourfold::io
