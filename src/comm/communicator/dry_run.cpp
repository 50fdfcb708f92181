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

  Work post(const OperationCall& call) override {
    const std::int64_t to = begin_of_own(call.recv_counts);
    const std::int64_t from = begin_of_own(call.send_counts);
    if (call.operation == Operation::all_gather || call.operation == Operation::all_to_all) {
      copy_elements(call.recv, to, call.send, from, call.recv_counts[rank_]);
    } else if (call.operation == Operation::reduce_scatter) {
      copy_elements(call.recv, to, call.send, from, call.send_counts[rank_]);
    }
    return {};
  }

  std::unique_ptr<Communicator> split(int /*color*/, int /*key*/,
                                      const std::string& name) override {
    if (size_ > 1) {
      throw UserError(ExitCode::internal,
                      format_message("a dry run cannot split '{}' by color into '{}' (it knows "
                                     "only the color of rank {}); use subgroup()",
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
  /// Of this rank's part, in elements; 0 where there is one part only.
  std::int64_t begin_of_own(std::span<const std::int64_t> counts) const {
    FOURFOLD_EXPECT(counts.empty() || std::ssize(counts) == size_);
    return counts.empty()
               ? 0
               : std::accumulate(counts.begin(), counts.begin() + rank_, std::int64_t{0});
  }

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
