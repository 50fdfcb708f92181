// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "reduction.hpp"
#include "shared_window.hpp"

#include <algorithm>
#include <utility>

namespace fourfold::comm {
namespace {

/// Up to this size every rank adds up everything: one wait fewer, and more to add.
constexpr std::int64_t whole_bytes = 32 * 1024;

/// All ranks' data cut into parts, and each area into a place for a piece of every part.
struct SharedReduction {
  SharedWindow* window = nullptr;
  ReductionPlan plan;
  std::int64_t piece_bytes = 0;

  SharedReduction(SharedWindow& its_window, ReductionPlan its_plan)
      : window(&its_window), plan(std::move(its_plan)) {
    constexpr std::int64_t line_bytes = 64;  // a multiple of every element's
    const std::int64_t area_bytes = SharedWindow::area_bytes(its_window.ranks());
    piece_bytes = area_bytes / its_window.ranks() / line_bytes * line_bytes;
  }

  std::int64_t steps() const { return pieces_of(plan.parts, piece_bytes); }
  std::byte* place(int rank, int part, std::int64_t step) const {
    return window->area(rank, step) + part * piece_bytes;
  }
  Extent piece(int part, std::int64_t step) const {
    return piece_of(plan.parts[part], step, piece_bytes);
  }

  /// The pieces that others reduce.
  void put(std::int64_t step) const {
    for (int part = 0; part < window->ranks(); ++part) {
      const Extent each = piece(part, step);
      if (part != window->rank()) {
        copy_bytes(place(window->rank(), part, step), plan.send + each.begin, each.bytes);
      }
    }
  }

  /// This rank's piece; returns where its result is.
  std::byte* reduce_own(std::int64_t step) const {
    const int rank = window->rank();
    const Extent own = piece(rank, step);
    std::byte* const result = plan.result + (own.begin - plan.parts[rank].begin);
    std::vector<const void*> inputs(window->ranks());
    for (int source = 0; source < window->ranks(); ++source) {
      inputs[source] = place(source, rank, step);
    }
    inputs[rank] = plan.send + own.begin;
    if (own.bytes > 0) {
      reduce(plan.dtype, plan.op, inputs, result, own.bytes / size_in_bytes(plan.dtype));
    }
    return result;
  }

  /// To where others take it from: the place that is free in this rank's own area.
  void put_result(std::int64_t step, const std::byte* result) const {
    const int rank = window->rank();
    copy_bytes(place(rank, rank, step), result, piece(rank, step).bytes);
  }

  void take_results(std::int64_t step) const {
    for (int distance = 1; distance < window->ranks(); ++distance) {
      const int part = (window->rank() + distance) % window->ranks();
      const Extent each = piece(part, step);
      copy_bytes(plan.gather + each.begin, place(part, part, step), each.bytes);
    }
  }
};

/// Every rank puts all it has and adds up all of it.
CollectiveTask all_reduce_whole(SharedWindow& window, std::uint64_t turn, TensorView data,
                                ReduceOp op) {
  const std::int64_t element_bytes = size_in_bytes(data.dtype());
  // Of whole elements.
  const std::int64_t piece_bytes =
      SharedWindow::area_bytes(window.ranks()) / element_bytes * element_bytes;
  const Extent all{0, bytes_of(data)};
  SharedWindow* const shared = &window;
  const SharedStep put = [=](std::int64_t step) {
    const Extent piece = piece_of(all, step, piece_bytes);
    copy_bytes(shared->area(shared->rank(), step), at(data.data(), piece.begin), piece.bytes);
  };
  const SharedStep use = [=](std::int64_t step) {
    const Extent piece = piece_of(all, step, piece_bytes);
    std::byte* const own = at(data.data(), piece.begin);
    std::vector<const void*> inputs(shared->ranks());
    for (int source = 0; source < shared->ranks(); ++source) {
      inputs[source] = shared->area(source, step);
    }
    inputs[shared->rank()] = own;
    reduce(data.dtype(), op, inputs, own, piece.bytes / element_bytes);
  };
  return in_turn(window, turn, pieces_of({&all, 1}, piece_bytes), put, use);
}

}  // namespace

CollectiveTask shared_all_reduce(SharedWindow& window, std::uint64_t turn, TensorView data,
                                 ReduceOp op) {
  if (bytes_of(data) <= whole_bytes) {
    return all_reduce_whole(window, turn, data, op);
  }
  auto parts = even_extents(data, window.ranks());
  std::byte* const bytes = at(data.data(), 0);
  std::byte* const result = bytes + parts[window.rank()].begin;
  const SharedReduction exchange(window,
                                 {bytes, std::move(parts), result, bytes, data.dtype(), op});
  return in_turn(
      window, turn, exchange.steps(), [exchange](std::int64_t step) { exchange.put(step); },
      [exchange](std::int64_t step) { exchange.put_result(step, exchange.reduce_own(step)); },
      [exchange](std::int64_t step) { exchange.take_results(step); });
}

CollectiveTask shared_reduce_scatter(SharedWindow& window, std::uint64_t turn, ReductionPlan plan) {
  const SharedReduction exchange(window, std::move(plan));
  return in_turn(
      window, turn, exchange.steps(), [exchange](std::int64_t step) { exchange.put(step); },
      [exchange](std::int64_t step) { exchange.reduce_own(step); });
}

CollectiveTask shared_gather(SharedWindow& window, std::uint64_t turn, const void* own, void* recv,
                             std::vector<Extent> parts) {
  const std::int64_t piece_bytes = SharedWindow::area_bytes(window.ranks());
  SharedWindow* const shared = &window;
  const Extent mine = parts[window.rank()];
  const std::int64_t steps = pieces_of(parts, piece_bytes);
  const SharedStep put = [=](std::int64_t step) {
    const Extent piece = piece_of(mine, step, piece_bytes);
    const std::byte* const source = at(own, piece.begin - mine.begin);
    copy_bytes(shared->area(shared->rank(), step), source, piece.bytes);
    copy_bytes(at(recv, piece.begin), source, piece.bytes);
  };
  const SharedStep use = [=, parts = std::move(parts)](std::int64_t step) {
    for (int distance = 1; distance < shared->ranks(); ++distance) {
      const int other = (shared->rank() + distance) % shared->ranks();
      const Extent piece = piece_of(parts[other], step, piece_bytes);
      copy_bytes(at(recv, piece.begin), shared->area(other, step), piece.bytes);
    }
  };
  return in_turn(window, turn, steps, put, use);
}

CollectiveTask shared_barrier(SharedWindow& window, std::uint64_t turn) {
  return in_turn(
      window, turn, 1, [](std::int64_t) {}, [](std::int64_t) {});
}

}  // namespace fourfold::comm
