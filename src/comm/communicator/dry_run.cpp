// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/communicator.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <numeric>
#include <utility>

namespace fourfold::comm {
namespace {

std::int64_t before(std::span<const std::int64_t> counts, int rank) {
  return std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t{0});
}

/// Layouts may be walked with views that have no memory.
void copy_elements(TensorView target, std::int64_t target_begin, ConstTensorView source,
                   std::int64_t source_begin, std::int64_t elements) {
  if (!target || !source || elements == 0) {
    return;
  }
  const std::int64_t element_bytes = size_in_bytes(target.dtype());
  std::memmove(static_cast<std::byte*>(target.data()) + target_begin * element_bytes,
               static_cast<const std::byte*>(source.data()) + source_begin * element_bytes,
               elements * element_bytes);
}

class DryRunCommunicator : public Communicator {
 public:
  DryRunCommunicator(int rank, int size, std::string name)
      : rank_(rank), size_(size), name_(std::move(name)) {}

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  const std::string& name() const noexcept override { return name_; }

  Work all_reduce(TensorView /*data*/, ReduceOp /*op*/, device::StreamRef /*stream*/,
                  std::source_location /*where*/) override {
    return {};
  }

  Work all_gather(ConstTensorView send, TensorView recv, std::span<const std::int64_t> counts,
                  device::StreamRef /*stream*/, std::source_location /*where*/) override {
    FOURFOLD_EXPECT(std::ssize(counts) == size_);
    copy_elements(recv, before(counts, rank_), send, 0, counts[rank_]);
    return {};
  }

  Work reduce_scatter(ConstTensorView send, TensorView recv, std::span<const std::int64_t> counts,
                      ReduceOp /*op*/, device::StreamRef /*stream*/,
                      std::source_location /*where*/) override {
    FOURFOLD_EXPECT(std::ssize(counts) == size_);
    copy_elements(recv, 0, send, before(counts, rank_), counts[rank_]);
    return {};
  }

  Work broadcast(TensorView /*data*/, int /*root*/, device::StreamRef /*stream*/,
                 std::source_location /*where*/) override {
    return {};
  }

  Work all_to_all(ConstTensorView send, std::span<const std::int64_t> send_counts, TensorView recv,
                  std::span<const std::int64_t> recv_counts, device::StreamRef /*stream*/,
                  std::source_location /*where*/) override {
    FOURFOLD_EXPECT(std::ssize(send_counts) == size_ && std::ssize(recv_counts) == size_);
    copy_elements(recv, before(recv_counts, rank_), send, before(send_counts, rank_),
                  send_counts[rank_]);
    return {};
  }

  Work send(ConstTensorView /*data*/, int /*peer*/, int /*tag*/, device::StreamRef /*stream*/,
            std::source_location /*where*/) override {
    return {};
  }
  Work recv(TensorView /*data*/, int /*peer*/, int /*tag*/, device::StreamRef /*stream*/,
            std::source_location /*where*/) override {
    return {};
  }
  void barrier(std::source_location /*where*/) override {}

  std::unique_ptr<Communicator> split(int /*color*/, int /*key*/,
                                      const std::string& name) override {
    if (size_ > 1) {
      throw UserError(
          ExitCode::internal,
          format_message("a dry run cannot split '{}' by color into '{}' (it knows only "
                         "the color of rank {}); use subgroup()",
                         name_, name, rank_));
    }
    return std::make_unique<DryRunCommunicator>(0, 1, name);
  }

  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override {
    const auto place = std::find(members.begin(), members.end(), rank_);
    FOURFOLD_EXPECT(place != members.end());
    return std::make_unique<DryRunCommunicator>(static_cast<int>(place - members.begin()),
                                                static_cast<int>(members.size()), name);
  }

 private:
  int rank_;
  int size_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Communicator> make_dry_run(int rank, int size, std::string name) {
  FOURFOLD_EXPECT(rank >= 0 && rank < size);
  return std::make_unique<DryRunCommunicator>(rank, size, std::move(name));
}

}  // namespace fourfold::comm
