// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/comm/communicator.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::comm {
namespace {

template <class T>
T reduced(Communicator& communicator, T value, ReduceOp op, std::source_location where) {
  communicator.host().all_reduce(TensorView(&value, {1}), op, {}, where).wait({});
  return value;
}

}  // namespace

void Communicator::use(Algorithm /*algorithm*/) {}

std::unique_ptr<RegisteredMemory> Communicator::register_memory(void* /*data*/,
                                                                std::size_t /*bytes*/) {
  return nullptr;
}

void Communicator::expect_messages(std::span<const MessageRoute> /*routes*/) {}

std::unique_ptr<Communicator> Communicator::subgroup(std::span<const int> members,
                                                     const std::string& name) {
  const auto place = std::find(members.begin(), members.end(), rank());
  FOURFOLD_EXPECT(place != members.end());
  const int color = *std::min_element(members.begin(), members.end());
  return split(color, static_cast<int>(place - members.begin()), name);
}

double all_reduce_scalar(Communicator& communicator, double value, ReduceOp op,
                         std::source_location where) {
  return reduced(communicator, value, op, where);
}

std::int64_t all_reduce_scalar(Communicator& communicator, std::int64_t value, ReduceOp op,
                               std::source_location where) {
  return reduced(communicator, value, op, where);
}

std::vector<std::string> all_gather_text(Communicator& communicator, const std::string& text,
                                         std::source_location where) {
  std::vector<std::int64_t> lengths(communicator.size());
  const std::vector<std::int64_t> ones(communicator.size(), 1);
  const std::int64_t own = std::ssize(text);
  Communicator& host = communicator.host();
  host.all_gather(ConstTensorView(&own, {1}), {lengths.data(), {std::ssize(lengths)}}, ones, {},
                  where)
      .wait({});
  std::string all(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), '\0');
  host.all_gather({text.data(), DType::u8, {own}}, {all.data(), DType::u8, {std::ssize(all)}},
                  lengths, {}, where)
      .wait({});
  std::vector<std::string> result;
  std::size_t begin = 0;
  for (const std::int64_t length : lengths) {
    result.push_back(all.substr(begin, length));
    begin += length;
  }
  return result;
}

std::string broadcast_text(Communicator& communicator, std::string text, int root,
                           std::source_location where) {
  std::int64_t length = std::ssize(text);
  Communicator& host = communicator.host();
  host.broadcast(TensorView(&length, {1}), root, {}, where).wait({});
  text.resize(length);
  host.broadcast({text.data(), DType::u8, {length}}, root, {}, where).wait({});
  return text;
}

namespace {

constexpr std::array algorithms{Algorithm::automatic, Algorithm::direct, Algorithm::shared,
                                Algorithm::ring, Algorithm::tree};

}  // namespace

std::span<const Algorithm> all_algorithms() noexcept {
  return algorithms;
}

std::string_view name(Algorithm algorithm) noexcept {
  constexpr std::array<std::string_view, algorithms.size()> names{"auto", "direct", "shared",
                                                                  "ring", "tree"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::optional<Algorithm> algorithm_from_name(std::string_view text) noexcept {
  const auto found = std::ranges::find(algorithms, text, name);
  return found == algorithms.end() ? std::nullopt : std::optional(*found);
}

std::vector<std::vector<MessageRoute>> disjoint_rounds(std::span<const MessageRoute> routes) {
  std::set<MessageRoute> left(routes.begin(), routes.end());
  std::vector<std::vector<MessageRoute>> rounds;
  while (!left.empty()) {
    std::set<int> taken;
    std::vector<MessageRoute> round;
    for (const MessageRoute& route : left) {
      if (!taken.contains(route.from) && !taken.contains(route.to)) {
        taken.insert({route.from, route.to});
        round.push_back(route);
      }
    }
    for (const MessageRoute& route : round) {
      left.erase(route);
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<int> members_of_color(Communicator& communicator, int color, int key) {
  const std::size_t size = communicator.size();
  const std::int32_t own[2] = {color, key};
  std::vector<std::int32_t> all(2 * size);
  const std::vector<std::int64_t> counts(size, 2);
  communicator.host().all_gather({own, {2}}, {all.data(), {std::ssize(all)}}, counts, {}).wait({});
  std::vector<int> members;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (all[2 * rank] == color) {
      members.push_back(rank);
    }
  }
  std::ranges::stable_sort(members, {}, [&all](int rank) { return all[2 * rank + 1]; });
  return members;
}

}  // namespace fourfold::comm
