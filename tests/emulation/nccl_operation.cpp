// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "nccl_operation.hpp"

#include <fourfold/base/dtype.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <type_traits>
#include <utility>

namespace fourfold::emulated {
namespace {

/// 16-bit values are computed with in float.
template <class T>
using Number =
    std::conditional_t<std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>, float, T>;

/// A partial sum is rounded at every rank, as that of a ring is.
template <class T>
T combined(T left, T right, ncclRedOp_t op) {
  const auto a = static_cast<Number<T>>(left);
  const auto b = static_cast<Number<T>>(right);
  if (op == ncclMax) {
    return a < b ? right : left;
  }
  if (op == ncclMin) {
    return b < a ? right : left;
  }
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(static_cast<U>(a) + static_cast<U>(b)));
  } else {
    return static_cast<T>(a + b);
  }
}

/// NCCL averages by scaling what goes in.
template <class T>
T scaled(T value, ncclRedOp_t op, std::size_t ranks) {
  if constexpr (!std::is_integral_v<T>) {
    if (op == ncclAvg) {
      const Number<T> scale = 1 / static_cast<Number<T>>(ranks);
      return static_cast<T>(static_cast<Number<T>>(value) * scale);
    }
  }
  return value;
}

/// The order is that of a ring: each part of the values begins with another rank.
template <class T>
void reduce_values(const std::vector<const std::byte*>& inputs, void* output, std::size_t count,
                   ncclRedOp_t op) {
  const std::size_t ranks = inputs.size();
  std::vector<T> result(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = i * ranks / count + 1;
    for (std::size_t step = 0; step < ranks; ++step) {
      T value;
      std::memcpy(&value, inputs[(first + step) % ranks] + i * sizeof(T), sizeof(T));
      value = scaled(value, op, ranks);
      result[i] = step == 0 ? value : combined(result[i], value, op);
    }
  }
  std::memcpy(output, result.data(), count * sizeof(T));
}

void reduce_all(const std::vector<const std::byte*>& inputs, void* output, std::size_t count,
                ncclDataType_t type, ncclRedOp_t op) {
  switch (type) {
    case ncclFloat32:
      return reduce_values<float>(inputs, output, count, op);
    case ncclFloat64:
      return reduce_values<double>(inputs, output, count, op);
    case ncclFloat16:
      return reduce_values<Float16>(inputs, output, count, op);
    case ncclBfloat16:
      return reduce_values<BFloat16>(inputs, output, count, op);
    case ncclInt32:
      return reduce_values<std::int32_t>(inputs, output, count, op);
    case ncclInt64:
      return reduce_values<std::int64_t>(inputs, output, count, op);
    case ncclUint8:
      return reduce_values<std::uint8_t>(inputs, output, count, op);
    case ncclUint32:
      return reduce_values<std::uint32_t>(inputs, output, count, op);
    case ncclUint64:
      return reduce_values<std::uint64_t>(inputs, output, count, op);
    default:
      std::fprintf(stderr, "emulated NCCL: no arithmetic for type %d\n", static_cast<int>(type));
      std::abort();
  }
}

const std::byte* at(const void* base, std::size_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}

constexpr std::uint64_t registered_bit = std::uint64_t{1} << 63;  // of a length

unsigned long long without_bit(std::uint64_t length) {
  return length & ~registered_bit;
}

const char* what(std::uint64_t length) {
  return (length & registered_bit) != 0 ? " registered" : "";
}

}  // namespace

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32:
      return 4;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 1;
  }
}

NcclOperation::NcclOperation(std::shared_ptr<NcclRank> rank)
    : rank_(std::move(rank)), turn_(rank_->enqueued++) {}

void NcclOperation::add(int peer, bool sends, const void* data, std::size_t bytes) {
  // [0]: as this rank has it; [1]: as the sender has it.
  lengths_.push_back(std::make_unique<std::uint64_t[]>(2));
  std::uint64_t* const length = lengths_.back().get();
  length[0] = bytes | (are_registered_ && bytes > 0 ? registered_bit : 0);
  auto* const told = reinterpret_cast<std::byte*>(sends ? length : length + 1);
  transfers_.push_back({.peer = peer, .sends = sends, .data = told, .bytes = sizeof(length[0])});
  auto* const values = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  transfers_.push_back({.peer = peer, .sends = sends, .data = values, .bytes = bytes});
  if (!sends) {
    at_end_.emplace_back([length, peer, me = rank_.get()] {
      if (length[0] != length[1]) {
        std::fprintf(
            stderr,
            "emulated NCCL: rank %d of '%s' expects %llu%s bytes from rank %d, which sends "
            "%llu%s\n",
            me->rank, me->name.c_str(), without_bit(length[0]), what(length[0]), peer,
            without_bit(length[1]), what(length[1]));
        std::abort();
      }
    });
  }
}

std::vector<std::byte*> NcclOperation::reduce_at_end(const std::byte* own, void* recv,
                                                     std::size_t count, ncclDataType_t type,
                                                     ncclRedOp_t op) {
  std::vector<std::byte*> places;
  std::vector<const std::byte*> inputs;
  for (int rank = 0; rank < rank_->ranks; ++rank) {
    scratch_.push_back(std::make_unique<std::vector<std::byte>>(count * size_of(type)));
    places.push_back(scratch_.back()->data());
    inputs.push_back(rank == rank_->rank ? own : places.back());
  }
  at_end_.emplace_back([=] { reduce_all(inputs, recv, count, type, op); });
  return places;
}

void NcclOperation::all_reduce(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op) {
  const auto places = reduce_at_end(at(send, 0), recv, count, type, op);
  for (int peer = 0; peer < rank_->ranks; ++peer) {
    if (peer != rank_->rank) {
      add(peer, true, send, count * size_of(type));
      add(peer, false, places[static_cast<std::size_t>(peer)], count * size_of(type));
    }
  }
}

void NcclOperation::reduce_scatter(const void* send, void* recv, std::size_t count,
                                   ncclDataType_t type, ncclRedOp_t op) {
  const std::size_t bytes = count * size_of(type);
  const auto own = static_cast<std::size_t>(rank_->rank);
  const auto places = reduce_at_end(at(send, own * bytes), recv, count, type, op);
  for (std::size_t peer = 0; peer < places.size(); ++peer) {
    if (peer != own) {
      add(static_cast<int>(peer), true, at(send, peer * bytes), bytes);
      add(static_cast<int>(peer), false, places[peer], bytes);
    }
  }
}

void NcclOperation::reduce(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, int root) {
  if (rank_->rank != root) {
    add(root, true, send, count * size_of(type));
    return;
  }
  const auto places = reduce_at_end(at(send, 0), recv, count, type, op);
  for (int peer = 0; peer < rank_->ranks; ++peer) {
    if (peer != root) {
      add(peer, false, places[static_cast<std::size_t>(peer)], count * size_of(type));
    }
  }
}

void NcclOperation::all_gather(const void* send, void* recv, std::size_t bytes) {
  for (int peer = 0; peer < rank_->ranks; ++peer) {
    const std::byte* const place = at(recv, static_cast<std::size_t>(peer) * bytes);
    if (peer == rank_->rank) {
      at_end_.emplace_back([=] { std::memmove(const_cast<std::byte*>(place), send, bytes); });
    } else {
      add(peer, true, send, bytes);
      add(peer, false, place, bytes);
    }
  }
}

void NcclOperation::broadcast(const void* send, void* recv, std::size_t bytes, int root) {
  if (rank_->rank != root) {
    add(root, false, recv, bytes);
    return;
  }
  for (int peer = 0; peer < rank_->ranks; ++peer) {
    if (peer != root) {
      add(peer, true, send, bytes);
    }
  }
  at_end_.emplace_back([=] { std::memmove(recv, send, bytes); });
}

void NcclOperation::send(const void* data, std::size_t bytes, int peer) {
  add(peer, true, data, bytes);
}

void NcclOperation::recv(void* data, std::size_t bytes, int peer) {
  add(peer, false, data, bytes);
}

bool NcclOperation::move_all() {
  std::set<std::pair<int, bool>> held;  // messages of one line keep their order
  for (Transfer& transfer : transfers_) {
    const auto line = std::pair(transfer.peer, transfer.sends);
    if (transfer.moved < transfer.bytes && !held.contains(line)) {
      std::byte* const data = transfer.data + transfer.moved;
      const std::size_t left = transfer.bytes - transfer.moved;
      transfer.moved += transfer.sends
                            ? rank_->board->mailbox(rank_->rank, transfer.peer).put(data, left)
                            : rank_->board->mailbox(transfer.peer, rank_->rank).take(data, left);
    }
    if (transfer.moved < transfer.bytes) {
      held.insert(line);
    }
  }
  return held.empty();
}

bool NcclOperation::are_sends_received() const {
  return std::ranges::all_of(transfers_, [this](const Transfer& transfer) {
    const Mailbox& box = rank_->board->mailbox(rank_->rank, transfer.peer);
    return !transfer.sends || box.read == box.written;
  });
}

/// A real one sees a connection break, where it has one.
void NcclOperation::look_for_the_gone() {
  constexpr std::uint64_t between = 1000;
  const bool is_blind = std::getenv("FOURFOLD_EMULATED_NCCL_BLIND") != nullptr;
  if (++times_ % between == 0 && !is_blind && rank_->board->is_someone_gone()) {
    rank_->error = ncclRemoteError;
  }
}

bool NcclOperation::advance() {
  if (rank_->is_aborted) {
    rank_->done = std::max<std::uint64_t>(rank_->done, turn_ + 1);
    return true;
  }
  if (rank_->error != ncclSuccess || rank_->done != turn_ || !move_all() || !are_sends_received()) {
    look_for_the_gone();
    return false;
  }
  for (const auto& finish : at_end_) {
    finish();
  }
  ++rank_->done;
  return true;
}

}  // namespace fourfold::emulated
