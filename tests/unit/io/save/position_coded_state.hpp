// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A state in which every element's bits are a function of its tensor and its global index, so that
/// any rank of any mesh can check what it loaded alone.
#pragma once

#include <fourfold/base/philox.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/save_request.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace fourfold::io_test {

struct TensorSpec {
  io::TensorId id;
  DType dtype = DType::f32;
  Shape shape;
};

/// Every rank from 0 to 4, odd sizes, empty, scalar, several dtypes.
inline std::vector<TensorSpec> small_model() {
  using io::TensorState;
  std::vector<TensorSpec> model;
  for (const TensorState state :
       {TensorState::master, TensorState("exp_avg"), TensorState("exp_avg_sq")}) {
    model.push_back({{"embed.weight", state}, DType::f32, {31, 13}});
    model.push_back({{"layers.0.norm.weight", state}, DType::f32, {17}});
    model.push_back({{"layers.0.scale", state}, DType::f32, {}});
    model.push_back({{"layers.0.experts", state}, DType::f32, {3, 5, 7}});
    model.push_back({{"layers.0.empty", state}, DType::f32, {0, 4}});
  }
  model.push_back({{"layers.1.attn.weight", TensorState::weight}, DType::bf16, {9, 10}});
  model.push_back({{"layers.1.kernel", TensorState::weight}, DType::f16, {2, 3, 4, 5}});
  model.push_back({{"counts", TensorState("momentum")}, DType::i64, {1, 6}});
  return model;
}

/// As little as there can be, with an empty tensor and a scalar: for tests that try every bit, and
/// every call.
inline std::vector<TensorSpec> tiny_model() {
  using io::TensorState;
  return {{{"a", TensorState::master}, DType::f32, {5, 3}},
          {{"a", TensorState("exp_avg")}, DType::f32, {}},
          {{"b", TensorState::weight}, DType::bf16, {3, 2}},
          {{"b", TensorState::master}, DType::f32, {0, 2}}};
}

inline std::uint64_t salt_of(const TensorSpec& tensor) {
  const std::string id = tensor.id.str();
  return name_salt(id.data(), id.size());
}
/// Bits of element `index`, cut to the element's size.
inline std::uint64_t coded_bits(std::uint64_t salt, std::int64_t index) {
  return mix64(salt + static_cast<std::uint64_t>(index));
}
inline std::uint64_t coded_bits(const TensorSpec& tensor, std::int64_t index) {
  return coded_bits(salt_of(tensor), index);
}

/// Which tensors, and which of all states that they may have.
struct CodedValues {
  std::vector<TensorSpec> model = small_model();
  /// Another one gives other values everywhere: a mixture of two steps shows.
  std::uint64_t salt = 0;
};

/// How a state lies on the ranks: the boxes of each tensor with their holders.
using Cut =
    std::function<std::vector<io::HeldBox>(const Shape& shape, std::size_t tensor, int ranks)>;

struct NamedCut {
  std::string name;
  Cut cut;
};

namespace detail {

inline std::vector<io::HeldBox> along(const Shape& shape, std::size_t dim, int ranks) {
  std::vector<io::HeldBox> boxes;
  for (int rank = 0; rank < ranks; ++rank) {
    const Range range = even_part(shape[dim], ranks, rank);
    Box box = Box::whole(shape);
    box.offset[dim] = range.begin;
    box.extent[dim] = range.count;
    boxes.push_back({box, io::RankSet::single(rank)});
  }
  return boxes;
}

}  // namespace detail

inline std::vector<NamedCut> all_cuts() {
  using io::HeldBox;
  using io::RankSet;
  std::vector<NamedCut> cuts;
  cuts.push_back({"replicated", [](const Shape& shape, std::size_t, int ranks) {
                    return std::vector<HeldBox>{{Box::whole(shape), RankSet::all(ranks)}};
                  }});
  cuts.push_back(
      {"rows", [](const Shape& shape, std::size_t tensor, int ranks) {
         return shape.rank() == 0
                    ? std::vector<HeldBox>{{Box::whole(shape),
                                            RankSet::single(static_cast<int>(tensor) % ranks)}}
                    : detail::along(shape, 0, ranks);
       }});
  cuts.push_back({"columns", [](const Shape& shape, std::size_t, int ranks) {
                    return shape.rank() == 0
                               ? std::vector<HeldBox>{{Box::whole(shape), RankSet::all(ranks)}}
                               : detail::along(shape, shape.rank() - 1, ranks);
                  }});
  cuts.push_back({"owners", [](const Shape& shape, std::size_t tensor, int ranks) {
                    return std::vector<HeldBox>{
                        {Box::whole(shape), RankSet::single(static_cast<int>(tensor) % ranks)}};
                  }});
  cuts.push_back({"flat", [](const Shape& shape, std::size_t, int ranks) {
                    std::vector<HeldBox> boxes;
                    for (int rank = 0; rank < ranks; ++rank) {
                      const Range range = even_part(shape.elements(), ranks, rank);
                      for (const Box& box : boxes_of_flat_range(shape, range)) {
                        boxes.push_back({box, RankSet::single(rank)});
                      }
                    }
                    return boxes;
                  }});
  // Two column shards, each replicated over the other axis; an odd last rank holds nothing.
  cuts.push_back({"tp2", [](const Shape& shape, std::size_t, int ranks) {
                    if (shape.rank() == 0 || ranks < 2) {
                      return std::vector<HeldBox>{{Box::whole(shape), RankSet::all(ranks)}};
                    }
                    std::vector<HeldBox> boxes = detail::along(shape, shape.rank() - 1, 2);
                    const RankSet::Axis dp{ranks / 2, 2};
                    boxes[0].holders = RankSet(0, {&dp, 1});
                    boxes[1].holders = RankSet(1, {&dp, 1});
                    return boxes;
                  }});
  return cuts;
}

/// One rank's share of the state under a cut. Not movable: views point into it.
class RankState {
 public:
  /// `filled`: with the coded values (to be saved), or with zeros (to be loaded into).
  RankState(const std::vector<TensorSpec>& model, const Cut& cut, int rank, int ranks, bool filled,
            std::uint64_t salt = 0)
      : model_(model) {
    for (std::size_t t = 0; t < model_.size(); ++t) {
      const TensorSpec& tensor = model_[t];
      layouts.push_back({tensor.id, tensor.dtype, tensor.shape, cut(tensor.shape, t, ranks)});
      for (const io::HeldBox& held : layouts.back().boxes) {
        if (!held.holders.contains(rank)) {
          continue;
        }
        auto& bytes = storage_.emplace_back(std::make_unique<std::vector<std::byte>>(
            static_cast<std::size_t>(held.box.elements()) * size_in_bytes(tensor.dtype)));
        const TensorView view(bytes->data(), tensor.dtype, held.box.extent);
        pieces.push_back({tensor.id, held.box, view});
        wanted.push_back({tensor.id, tensor.shape, held.box, view});
        if (filled) {
          each_element(tensor, held.box, salt, bytes->data(),
                       [](auto& element, auto coded) { element = coded; });
        }
      }
    }
  }
  RankState(const RankState&) = delete;
  RankState& operator=(const RankState&) = delete;

  /// Elements that are not what they should be. @param salt  of CodedValues
  std::int64_t wrong_elements(std::uint64_t salt = 0) const {
    std::int64_t wrong = 0;
    std::map<io::TensorId, const TensorSpec*> specs;
    for (const TensorSpec& tensor : model_) {
      specs.emplace(tensor.id, &tensor);
    }
    for (const io::WantedBox& box : wanted) {
      const TensorSpec* const tensor = specs.at(box.id);
      each_element(*tensor, box.box, salt, box.data.data(),
                   [&](auto element, auto coded) { wrong += element == coded ? 0 : 1; });
    }
    return wrong;
  }

  /// Boxes whose bytes are not those of `expected`, which has the same boxes: for states so large
  /// that to work out each element takes longer than what is tested.
  std::int64_t boxes_unlike(const RankState& expected) const {
    std::int64_t unlike = 0;
    for (std::size_t box = 0; box < storage_.size(); ++box) {
      unlike += *storage_[box] == *expected.storage_.at(box) ? 0 : 1;
    }
    return unlike;
  }

  std::vector<io::TensorLayout> layouts;
  std::vector<io::Piece> pieces;
  std::vector<io::WantedBox> wanted;

 private:
  /// Visits the elements of a box, whose bits lie at `data`, with the bits that are coded for them.
  template <class Visit>
  static void each_element(const TensorSpec& tensor, const Box& box, std::uint64_t state_salt,
                           void* data, const Visit& visit) {
    const std::uint64_t salt = salt_of(tensor) + (state_salt << 40);
    switch (size_in_bytes(tensor.dtype)) {
      case 2:
        return each_as<std::uint16_t>(tensor, box, salt, data, visit);
      case 4:
        return each_as<std::uint32_t>(tensor, box, salt, data, visit);
      case 8:
        return each_as<std::uint64_t>(tensor, box, salt, data, visit);
      default:
        throw std::logic_error("no coded values of this size");
    }
  }
  // By whole elements: tests look at hundreds of millions of them, some under sanitizers.
  template <class Bits, class Visit>
  static void each_as(const TensorSpec& tensor, const Box& box, std::uint64_t salt, void* data,
                      const Visit& visit) {
    for_each_run(box, Box::whole(tensor.shape), box, [&](const Run& run) {
      Bits* const elements = static_cast<Bits*>(data) + run.source_element;
      for (std::int64_t k = 0; k < run.elements; ++k) {
        visit(elements[k], static_cast<Bits>(coded_bits(salt, run.target_element + k)));
      }
    });
  }

  std::vector<TensorSpec> model_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> storage_;
};

inline io::CheckpointScalars some_scalars(std::int64_t step) {
  return {{{"consumed_samples", step * 512}, {"seed", 1234}},
          {{"loss_scale", 65536.0}, {"best_loss", 2.25}},
          {{"config.toml", "[model]\nfamily = \"gpt2\"\n"}, {"nothing", ""}}};
}

/// Saves the coded state as `ranks` threads under a cut.
inline io::SaveReport save_as(const std::filesystem::path& directory, const NamedCut& cut,
                              int ranks, std::int64_t step, comm::Communicator& world,
                              io::StoreOptions options = {.keep_last = 0,
                                                          .plan = {.smallest_part_bytes = 64}},
                              const CodedValues& values = {}) {
  const RankState state(values.model, cut.cut, world.rank(), ranks, true, values.salt);
  io::CheckpointStore store(directory, options);
  return store.save({.step = step,
                     .mesh = {1, ranks, 1, 1},
                     .scalars = some_scalars(step),
                     .tensors = state.layouts,
                     .pieces = state.pieces},
                    world);
}

}  // namespace fourfold::io_test
