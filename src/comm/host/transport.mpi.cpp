// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "transport.mpi.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/comm/clock_offset.hpp>

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::comm {

namespace {

/// MPI counts are int; longer messages go in pieces, which arrive in order.
constexpr std::size_t longest_message_bytes = std::size_t{1} << 30;

/// MPI guarantees tags up to this at least; no attribute needs to be asked for on groups of one.
constexpr int guaranteed_tags = 32768;

int tags_of(MPI_Comm comm) {
  int* upper_bound = nullptr;
  int found = 0;
  check_mpi(MPI_Comm_get_attr(comm, MPI_TAG_UB, &upper_bound, &found));
  // The largest value is left out, so that the count fits an int.
  return found != 0 ? std::max(*upper_bound, guaranteed_tags - 1) : guaranteed_tags;
}

class MpiBatch : public TransferBatch {
 public:
  explicit MpiBatch(MPI_Comm comm) : comm_(comm) {}

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    in_pieces(bytes, [&](std::size_t begin, int count) {
      check_mpi(MPI_Isend(static_cast<const std::byte*>(data) + begin, count, MPI_BYTE, peer, tag,
                          comm_, next(-1)));
    });
  }

  void recv(void* data, std::size_t bytes, int peer, int tag) override {
    in_pieces(bytes, [&](std::size_t begin, int count) {
      check_mpi(MPI_Irecv(static_cast<std::byte*>(data) + begin, count, MPI_BYTE, peer, tag, comm_,
                          next(count)));
    });
  }

  bool done() override {
    if (requests_.empty()) {
      return true;
    }
    statuses_.resize(requests_.size());
    int complete = 0;
    const int rc = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &complete,
                               statuses_.data());
    if (rc == MPI_ERR_IN_STATUS) {
      for (const MPI_Status& status : statuses_) {
        if (status.MPI_ERROR != MPI_ERR_PENDING) {
          check_mpi(status.MPI_ERROR);
        }
      }
    }
    check_mpi(rc);
    if (complete == 0) {
      return false;
    }
    check_lengths();
    requests_.clear();
    expected_bytes_.clear();
    return true;
  }

 private:
  template <class Post>
  static void in_pieces(std::size_t bytes, Post post) {
    std::size_t begin = 0;
    do {  // once even for an empty message
      const std::size_t count = std::min(longest_message_bytes, bytes - begin);
      post(begin, static_cast<int>(count));
      begin += count;
    } while (begin < bytes);
  }

  MPI_Request* next(int expected) {
    expected_bytes_.push_back(expected);
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }

  /// MPI itself only reports messages that are too long.
  void check_lengths() const {
    for (std::size_t i = 0; i < statuses_.size(); ++i) {
      int bytes = 0;
      if (expected_bytes_[i] < 0) {
        continue;
      }
      check_mpi(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes));
      if (bytes != expected_bytes_[i]) {
        throw Error(
            ExitCode::internal,
            format_message("rank {} sent {} bytes where {} were expected (a bug of fourfold)",
                           statuses_[i].MPI_SOURCE, bytes, expected_bytes_[i]));
      }
    }
  }

  MPI_Comm comm_;
  std::vector<MPI_Request> requests_;
  std::vector<int> expected_bytes_;  ///< of each request; -1 for sends
  std::vector<MPI_Status> statuses_;
};

}  // namespace

void CommTraits::close(MPI_Comm comm) noexcept {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized != 0 || MPI_Comm_free(&comm) != MPI_SUCCESS) {
    log::local(log::Level::warning, "an MPI communicator could not be freed (MPI has ended)");
  }
}

void MpiProgress::pause(std::uint64_t /*seen*/, const std::string& /*what*/) {
  if (++spun_ > spins_) {
    spun_ = 0;
    // A rank that waits for shared memory calls nothing of MPI, and a message that is sent as far
    // as MPI told may still need it to get away.
    int found = 0;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE));
    sched_yield();
  }
}

void MpiProgress::finish(MPI_Request request, const std::string& what) {
  const auto is_complete = [&request] {
    int complete = 0;
    check_mpi(MPI_Test(&request, &complete, MPI_STATUS_IGNORE));
    return complete != 0;
  };
  run(is_complete, what);
}

MpiTransport::MpiTransport(CommHandle comm, MpiProgress& progress)
    : comm_(std::move(comm)), progress_(progress), tags_(guaranteed_tags) {
  if (comm_) {
    check_mpi(MPI_Comm_set_errhandler(comm_.get(), MPI_ERRORS_RETURN));
    check_mpi(MPI_Comm_rank(comm_.get(), &rank_));
    check_mpi(MPI_Comm_size(comm_.get(), &size_));
    tags_ = tags_of(comm_.get());
  }
}

std::unique_ptr<MpiTransport> MpiTransport::duplicate(MPI_Comm comm, MpiProgress& progress) {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Comm_idup(comm, &copy, &request));
  progress.finish(request, "duplicating a communicator");
  return std::make_unique<MpiTransport>(CommHandle(copy), progress);
}

std::int64_t MpiTransport::memory_domain() const {
  const std::string machine = machine_identity();
  return name_salt(machine.data(), machine.size());
}

std::unique_ptr<TransferBatch> MpiTransport::batch() {
  return std::make_unique<MpiBatch>(comm_.get());
}

std::unique_ptr<Transport> MpiTransport::subgroup(std::span<const int> members,
                                                  const std::string& name) {
  if (members.size() == 1) {
    return std::make_unique<MpiTransport>(CommHandle(), progress_);
  }
  const bool everybody =
      std::ssize(members) == size_ && std::is_sorted(members.begin(), members.end());
  if (everybody) {
    return duplicate(comm_.get(), progress_);
  }
  MPI_Comm comm = comm_of(comm_.get(), members);
  check_mpi(MPI_Comm_set_name(comm, name.c_str()));
  return std::make_unique<MpiTransport>(CommHandle(comm), progress_);
}

MPI_Comm comm_of(MPI_Comm parent, std::span<const int> members) {
  MPI_Group all = MPI_GROUP_NULL;
  MPI_Group chosen = MPI_GROUP_NULL;
  MPI_Comm comm = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(parent, &all));
  check_mpi(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &chosen));
  check_mpi(MPI_Comm_create_group(parent, chosen, 0, &comm));
  check_mpi(MPI_Group_free(&chosen));
  check_mpi(MPI_Group_free(&all));
  return comm;
}

std::string mpi_library() {
  std::string text(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  check_mpi(MPI_Get_library_version(text.data(), &length));
  text.resize(length);
  return text;
}

void check_mpi(int rc, std::source_location where) {
  if (rc == MPI_SUCCESS) {
    return;
  }
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(rc, text.data(), &length) != MPI_SUCCESS) {
    length = 0;
  }
  text.resize(length);
  throw SystemError(ExitCode::node_fault,
                    format_message("an MPI call failed at {}:{} (error {}: {})", where.file_name(),
                                   where.line(), rc, text),
                    where);
}

}  // namespace fourfold::comm
