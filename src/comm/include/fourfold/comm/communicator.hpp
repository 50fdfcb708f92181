// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// One interface, several transports: threads (ranks are threads of one process; in host memory, or
/// on one device), mpi (host memory), nccl (device memory, a device for each rank) and dry-run
/// (rank r of N, moves nothing). Every parallel algorithm runs unchanged on all of them.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/algorithm.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/stream.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::comm {

class FlightRecorder;

/// avg is the sum divided by the number of ranks (floating-point types only).
enum class ReduceOp : std::uint8_t { sum, max, min, avg };

enum class Operation : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  all_to_all,
  barrier,
  send,
  recv
};
constexpr auto names_of(Operation /*any*/) {
  using enum Operation;
  return std::to_array<Named<Operation>>({{all_reduce, "all_reduce"},
                                          {all_gather, "all_gather"},
                                          {reduce_scatter, "reduce_scatter"},
                                          {broadcast, "broadcast"},
                                          {all_to_all, "all_to_all"},
                                          {barrier, "barrier"},
                                          {send, "send"},
                                          {recv, "recv"}});
}
/// Whether all ranks of a communicator take part.
constexpr bool is_collective(Operation operation) noexcept {
  return operation < Operation::send;
}

/// An operation with all that it is called with; what its kind does not have is empty.
struct OperationCall {
  Operation operation = Operation::barrier;
  ConstTensorView send = {nullptr, DType::u8, {0}};  ///< in place: the same memory as `recv`
  TensorView recv = {nullptr, DType::u8, {0}};
  std::span<const std::int64_t> send_counts = {};
  std::span<const std::int64_t> recv_counts = {};
  ReduceOp op = ReduceOp::sum;
  int peer = -1;  ///< rank in the communicator: of send, recv; the root of broadcast
  int tag = 0;
  device::StreamRef stream = {};
  std::source_location where = {};

  /// Of the larger buffer.
  std::int64_t bytes() const noexcept { return std::max(send.bytes(), recv.bytes()); }
};

/// A way that messages take between two ranks of a communicator.
struct MessageRoute {
  int from = 0;
  int to = 0;
  int tag = 0;
  friend auto operator<=>(const MessageRoute&, const MessageRoute&) = default;
};

/// Memory that a transport has made known to its network; until this ends.
class RegisteredMemory {
 public:
  virtual ~RegisteredMemory() = default;
  RegisteredMemory() = default;
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;
};

/// A group of ranks that communicate among themselves.
///
/// Rules for every operation, unless said otherwise:
/// - Collective: all ranks of the communicator call it, in the same order; op, dtype, counts and
///   root agree on all ranks. Contract builds compare that across ranks where the memory is the
///   host's; for device memory each rank checks its own call only.
/// - Buffers lie in the memory that the communicator is for: device memory, or that of host().
/// - Enqueued on `stream`: it reads and writes its buffers after the work enqueued on `stream`
///   before, and gives back a Work that a stream waits for. Buffers are borrowed until then and
///   must not overlap unless it says "in place". `stream` itself goes on after the operation, at
///   the latest from when a stream has waited for it or it was seen to have finished.
/// - Counts are in elements; shapes are ignored beyond elements(). Zero counts are allowed. What is
///   sent and what is received are of one dtype.
/// - Results of a reduction have the same bits every time and on all ranks.
/// - Where sums_in_rank_order(), sums of bf16 and f16 accumulate in float and are rounded once, and
///   an element's sum is taken in an order that depends on the number of ranks alone: the same bits
///   however the elements are cut, and the same from all_reduce as from reduce_scatter. NCCL
///   promises neither: it rounds a partial sum at each rank that it passes, scales what goes into
///   an average rather than what comes out, and its order depends on where an element lies.
/// - One thread per rank uses a communicator at a time.
/// - `where` is the call as the flight recorder shows it.
///
/// @throws SystemError (exit code node_fault) naming the operation, this communicator and the rank
///   when a peer or the transport fails.
class Communicator {
 public:
  virtual ~Communicator() = default;
  Communicator() = default;
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// "world", "dp", "tp", ...: shown in errors, traces and by the flight recorder.
  virtual const std::string& name() const noexcept = 0;

  /// The same ranks, for what lies in memory of the host: set-up, logging, votes, files. Only where
  /// devices have memory of their own is it another communicator. Lives as long as this one.
  virtual Communicator& host() noexcept { return *this; }

  /// What this rank has called lately, on all communicators of its transport; nullptr where nothing
  /// is recorded.
  virtual FlightRecorder* flight_recorder() noexcept { return nullptr; }

  /// Chooses how the collectives called later go, here and in what is split from here later.
  /// Collective over this communicator, with nothing in flight on it; blocks. A transport that has
  /// one way only goes on with it.
  /// @throws UserError (config), on all ranks, for `shared` where the ranks have no memory in
  /// common
  virtual void use(Algorithm algorithm);
  /// How they go: never automatic.
  virtual Algorithm algorithm() const noexcept { return Algorithm::direct; }
  /// Whether a sum's bits depend on nothing but the values and the number of ranks.
  virtual bool sums_in_rank_order() const noexcept { return true; }

  /// In place: every rank ends with the reduction over all ranks.
  [[nodiscard]] Work all_reduce(TensorView data, ReduceOp op, device::StreamRef stream,
                                std::source_location where = std::source_location::current());

  /// recv = concatenation over ranks of their send; counts[r] elements come from rank r.
  /// In place when send lies at its own position inside recv.
  /// @pre counts.size() == size(); send.elements() == counts[rank()]; recv.elements() == sum of
  /// counts
  [[nodiscard]] Work all_gather(ConstTensorView send, TensorView recv,
                                std::span<const std::int64_t> counts, device::StreamRef stream,
                                std::source_location where = std::source_location::current());

  /// recv = this rank's part of the element-wise reduction of send; rank r gets counts[r] elements,
  /// in rank order. In place when recv lies at its own position inside send; the rest of send is
  /// left as it is.
  /// @pre counts.size() == size(); send.elements() == sum of counts; recv.elements() ==
  /// counts[rank()]
  [[nodiscard]] Work reduce_scatter(ConstTensorView send, TensorView recv,
                                    std::span<const std::int64_t> counts, ReduceOp op,
                                    device::StreamRef stream,
                                    std::source_location where = std::source_location::current());

  /// In place: data of `root` reaches all.
  /// @pre 0 <= root < size()
  [[nodiscard]] Work broadcast(TensorView data, int root, device::StreamRef stream,
                               std::source_location where = std::source_location::current());

  /// Rank r's send part s (send_counts[s] elements, in rank order) becomes rank s's recv part r.
  /// @pre send_counts.size() == recv_counts.size() == size(); send.elements() and recv.elements()
  /// are their sums; send_counts of rank r for s equals recv_counts of rank s for r
  [[nodiscard]] Work all_to_all(ConstTensorView send, std::span<const std::int64_t> send_counts,
                                TensorView recv, std::span<const std::int64_t> recv_counts,
                                device::StreamRef stream,
                                std::source_location where = std::source_location::current());

  /// Says which ways messages will take, before the first of them: between devices each is a line
  /// of its own, which has to be laid. Others need none and do nothing. Collective, with the same
  /// routes on all ranks, in any order; blocks. Routes that are known already may be among them.
  virtual void expect_messages(std::span<const MessageRoute> routes);

  /// Says that collectives, and messages on routes that are expected by now, will move what lies in
  /// these `bytes`, which a transport may then do without copies of its own. No operation may find
  /// its buffers registered on some of its ranks and not on others: all ranks register what
  /// corresponds, in the same order. Does not wait for other ranks. One memory may be registered
  /// with several communicators, and with one several times.
  /// @return nullptr where that is of no use; else it must end before the memory and before this
  /// communicator
  [[nodiscard]] virtual std::unique_ptr<RegisteredMemory> register_memory(void* data,
                                                                          std::size_t bytes);
  /// Whether that can be of use: alike on all ranks, and for all that are split off and have
  /// several.
  virtual bool registers_memory() const noexcept { return false; }

  /// Point to point. A send matches the recv of equal tag posted by the peer, in order of posting.
  /// Both directions may be in flight; neither blocks before wait(). Not collective.
  /// @pre 0 <= peer < size() and peer != rank(); the route was expected
  [[nodiscard]] Work send(ConstTensorView data, int peer, int tag, device::StreamRef stream,
                          std::source_location where = std::source_location::current());
  [[nodiscard]] Work recv(TensorView data, int peer, int tag, device::StreamRef stream,
                          std::source_location where = std::source_location::current());

  /// Blocks the host until all ranks are here.
  void barrier(std::source_location where = std::source_location::current());

  /// What all of these come down to, for transports and for who stands between them and a caller.
  /// What `call` refers to besides tensors is borrowed until this returns.
  [[nodiscard]] virtual Work post(const OperationCall& call) = 0;

  /// Splits into one communicator per color, ranks ordered by (key, rank). Collective over this
  /// communicator; blocks. The result is independent of this one but must not outlive the
  /// transport's runtime.
  virtual std::unique_ptr<Communicator> split(int color, int key, const std::string& name) = 0;

  /// As split(), for groups that every rank knows beforehand (the axes of a mesh): `members` are
  /// the ranks of this communicator in this rank's group, in the new order. No colors are
  /// exchanged, so it also works on a dry run. Collective over this communicator; blocks.
  /// @pre members are distinct, contain rank() and are the same list on each of them
  virtual std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                                 const std::string& name);
};

/// Blocking reductions of single numbers, for set-up, logging and votes. Collective.
double all_reduce_scalar(Communicator& communicator, double value, ReduceOp op,
                         std::source_location where = std::source_location::current());
std::int64_t all_reduce_scalar(Communicator& communicator, std::int64_t value, ReduceOp op,
                               std::source_location where = std::source_location::current());

/// Gathers each rank's bytes (any length) to all ranks, in rank order. Blocks. For set-up and error
/// reports only.
std::vector<std::string> all_gather_text(
    Communicator& communicator, const std::string& text,
    std::source_location where = std::source_location::current());

/// Copies root's text to all. Blocks.
std::string broadcast_text(Communicator& communicator, std::string text, int root,
                           std::source_location where = std::source_location::current());

/// A communicator that answers as rank `rank` of `size` and moves nothing between ranks: what comes
/// from others stays as it was in the buffers, this rank's own part is put where it belongs. For
/// planning, and for checking layouts of thousands of ranks in one process. With size 1 it is an
/// exact communicator.
///
/// subgroup() (and so Mesh) works for any size; split() cannot know the others' colors.
/// split() @throws UserError (exit code internal) unless size is 1.
/// @pre 0 <= rank < size
std::unique_ptr<Communicator> make_dry_run(int rank, int size, std::string name = "world");

/// For programs whose ranks are threads, or that have none: each of several processes would do all
/// of the work. Asks the launcher's variables; MPI is not needed.
/// @param program  for the message: "fourfold verify"
/// @throws UserError (config) when a launcher has started this process as one of several
void require_single_process(const std::string& program);

}  // namespace fourfold::comm
