// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The functions of NCCL that fourfold calls, for processes that have emulated devices.
#include "device_memory.hpp"
#include "nccl_operation.hpp"
#include "nccl_traffic.hpp"
#include "planned_failure.hpp"
#include "queues.hpp"

#include <nccl.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace fourfold::emulated;

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void complain(const char* what) {
  std::fprintf(stderr, "emulated NCCL: %s\n", what);
  std::abort();
}

/// The pointer that NCCL keeps of a text, and what it said.
struct LentText {
  const char* text = nullptr;
  std::string copy;
};

LentText lent(const char* text) {
  return {text, text == nullptr ? "" : text};
}

void require_as_lent(const LentText& name) {
  if (name.text != nullptr && name.copy != name.text) {
    complain("the name of a communicator has ended before it");
  }
}

/// What the function that calls us leaves behind when it throws.
bool is_on_own_stack(const void* address) {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  std::size_t bytes = 0;
  const bool is_known = pthread_getattr_np(pthread_self(), &attributes) == 0 &&
                        pthread_attr_getstack(&attributes, &lowest, &bytes) == 0;
  pthread_attr_destroy(&attributes);
  const auto* const first = static_cast<const std::byte*>(lowest);
  return is_known && address >= first && address < first + bytes;
}

/// What the background needs must not end with a call that gives up waiting for it.
void require_to_last(const void* address, const char* what) {
  if (address != nullptr && is_on_own_stack(address)) {
    complain(what);
  }
}

}  // namespace

/// As a user holds it. A child that is being split off belongs to its parent until it is ready.
struct ncclComm {
  struct Split {
    int color = 0;
    std::uint64_t serial = 0;
    ncclComm_t* place = nullptr;  ///< where the user wants it
    LentText name;
    Clock::time_point began = Clock::now();
    ncclComm_t child = nullptr;
  };
  std::shared_ptr<NcclRank> rank;
  LentText name;
  bool is_ready = false;
  std::optional<Split> split = {};
  RegisteredRanges registered = {};
};

namespace {

/// FAIL_AS_PLANNED (call_result.hpp) of NCCL's calls: the number planned is an ncclResult_t.
#define FAIL_NCCL_AS_PLANNED(call)                               \
  if (const cudaError_t planned = planned_failure(call)) {       \
    return static_cast<ncclResult_t>(static_cast<int>(planned)); \
  }

/// What the real one uses as long as the communicator lives.
void require_sound(const ncclComm& comm) {
  require_as_lent(comm.name);
  if (comm.split) {
    require_as_lent(comm.split->name);
  }
}

ncclComm_t join(const std::string& name, int ranks, int rank, LentText lent_name) {
  hurry();
  auto own = std::make_shared<NcclRank>();
  own->name = name;
  own->rank = rank;
  own->ranks = ranks;
  own->board = std::make_unique<Board>("/fourfold-nccl-" + name, ranks, rank);
  return new ncclComm{std::move(own), std::move(lent_name)};
}

/// Ranks of the parent that are in the child, in its order; nothing until all have told theirs.
std::optional<std::vector<int>> members_of(const NcclRank& parent, const ncclComm::Split& split) {
  std::vector<std::pair<int, int>> found;  // key, rank
  for (int rank = 0; rank < parent.ranks; ++rank) {
    const SplitWord& word = parent.board->words(rank).splits[split.serial % 2];
    if (word.serial < split.serial) {
      return std::nullopt;
    }
    if (word.color == split.color) {
      found.emplace_back(word.key, rank);
    }
  }
  std::sort(found.begin(), found.end());
  std::vector<int> members;
  for (const auto& [key, rank] : found) {
    members.push_back(rank);
  }
  return members;
}

bool is_ready(ncclComm& comm) {
  comm.is_ready = comm.is_ready || comm.rank->board->all_are_here();
  return comm.is_ready;
}

bool has_to_wait(const ncclComm::Split& split) {
  static const char* const text = std::getenv("FOURFOLD_EMULATED_NCCL_SPLITS_S");
  return text != nullptr &&
         Clock::now() - split.began < std::chrono::duration<double>(std::strtod(text, nullptr));
}

/// Whether the split is over.
bool go_on_splitting(ncclComm& parent) {
  ncclComm::Split& split = *parent.split;
  if (has_to_wait(split)) {
    return false;
  }
  if (split.child == nullptr) {
    const auto members = members_of(*parent.rank, split);
    if (!members) {
      return false;
    }
    if (split.color == NCCL_SPLIT_NOCOLOR) {
      parent.split.reset();
      return true;
    }
    const auto own = std::find(members->begin(), members->end(), parent.rank->rank);
    const std::string name =
        parent.rank->name + "-" + std::to_string(split.serial) + "." + std::to_string(split.color);
    split.child = join(name, static_cast<int>(members->size()),
                       static_cast<int>(own - members->begin()), split.name);
  }
  if (!is_ready(*split.child)) {
    return false;
  }
  *split.place = split.child;
  parent.split.reset();
  return true;
}

/// As the real one, which waits for its thread: there is a child in the end, if a broken one.
void break_off_splitting(ncclComm& parent) {
  const ncclComm::Split& split = *parent.split;
  if (split.color != NCCL_SPLIT_NOCOLOR) {
    *split.place = split.child != nullptr ? split.child
                                          : new ncclComm{std::make_shared<NcclRank>(), split.name};
  }
  parent.split.reset();
}

/// Any thread may ask how it goes.
std::mutex& asking() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

/// As a network does, for a reason that nobody knows.
bool is_broken_by_now() {
  static const Clock::time_point began = Clock::now();
  static const char* const text = std::getenv("FOURFOLD_EMULATED_NCCL_BREAKS_S");
  return text != nullptr &&
         Clock::now() - began > std::chrono::duration<double>(std::strtod(text, nullptr));
}

ncclResult_t state_of(ncclComm& comm) {
  const std::scoped_lock lock(asking());
  require_sound(comm);
  if (is_broken_by_now()) {
    comm.rank->error = ncclRemoteError;
  }
  if (comm.rank->error != ncclSuccess) {
    return comm.rank->error;
  }
  const bool is_over = is_ready(comm) && (!comm.split || go_on_splitting(comm));
  return is_over ? ncclSuccess : ncclInProgress;
}

ncclResult_t finish(ncclComm& comm, const ncclConfig_t* config) {
  if (config != nullptr && config->blocking == 0) {
    return ncclInProgress;
  }
  while (state_of(comm) == ncclInProgress) {
    std::this_thread::yield();
  }
  return comm.rank->error;
}

/// What was called between ncclGroupStart() and ncclGroupEnd(): an operation for each communicator.
struct Group {
  int depth = 0;
  struct Part {
    ncclComm_t comm = nullptr;
    cudaStream_t stream = nullptr;
    std::shared_ptr<NcclOperation> operation;
  };
  std::vector<Part> parts;
};
thread_local Group group;

void enqueue_part(const Group::Part& part) {
  enqueue(queue_of(part.stream),
          {.kind = Item::Kind::meeting,
           .advance = [operation = part.operation] { return operation->advance(); }});
}

template <class Call>
ncclResult_t add(ncclComm_t comm, cudaStream_t stream, const std::vector<UserBuffer>& buffers,
                 const Call& call) {
  if (comm == nullptr || queue_of(stream) == nullptr) {
    return ncclInvalidArgument;
  }
  if (state_of(*comm) != ncclSuccess) {
    return ncclInvalidUsage;
  }
  const bool are_registered = count_traffic(comm->name.copy, comm->registered, buffers);
  const auto add_to = [&](NcclOperation& operation) {
    operation.have_registered(are_registered);
    call(operation);
  };
  if (group.depth == 0) {
    const Group::Part part{comm, stream, std::make_shared<NcclOperation>(comm->rank)};
    add_to(*part.operation);
    enqueue_part(part);
    return ncclSuccess;
  }
  const auto found = std::find_if(group.parts.begin(), group.parts.end(),
                                  [&](const Group::Part& part) { return part.comm == comm; });
  if (found != group.parts.end()) {
    add_to(*found->operation);
    return found->stream == stream ? ncclSuccess : ncclInvalidUsage;
  }
  group.parts.push_back({comm, stream, std::make_shared<NcclOperation>(comm->rank)});
  add_to(*group.parts.back().operation);
  return ncclSuccess;
}

std::size_t ranks_of(const ncclComm* comm) {
  return comm == nullptr ? 0 : static_cast<std::size_t>(comm->rank->ranks);
}

/// What all have, and what only the root has.
std::vector<UserBuffer> of_root(std::vector<UserBuffer> all, const UserBuffer& more, int root,
                                const ncclComm* comm) {
  if (comm != nullptr && comm->rank->rank == root) {
    all.push_back(more);
  }
  return all;
}

UserBuffer values(const void* data, std::size_t count, ncclDataType_t type) {
  return {data, count * size_of(type)};
}

bool is_device_only(const void* data, std::size_t bytes) {
  return bytes == 0 || DeviceMemory::get().contains(data);
}

}  // namespace

ncclResult_t ncclGetVersion(int* version) {
  const char* const text = std::getenv("FOURFOLD_EMULATED_NCCL_VERSION");
  *version = text == nullptr ? NCCL_VERSION_CODE : std::atoi(text);
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  FAIL_NCCL_AS_PLANNED("ncclGetUniqueId")
  *id = {};
  std::random_device device;
  std::snprintf(static_cast<char*>(id->internal), sizeof(id->internal), "%08x%08x%08x", device(),
                device(), device());
  return ncclSuccess;
}

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError          ? "remote process exited or there was a network error"
         : result == ncclSystemError        ? "unhandled system error"
         : result == ncclUnhandledCudaError ? "unhandled cuda error"
         : result == ncclInvalidUsage       ? "invalid usage"
         : result == ncclSuccess            ? "no error"
                                            : "as the emulated device was told to";
}

const char* ncclGetLastError(ncclComm_t /*comm*/) {
  const char* const text = std::getenv("FOURFOLD_EMULATED_NCCL_SAYS");
  return text == nullptr ? "" : text;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  FAIL_NCCL_AS_PLANNED("ncclCommInitRankConfig")
  require_to_last(config->commName, "the name of a communicator is on the stack");
  *comm = join(static_cast<const char*>(id.internal), ranks, rank, lent(config->commName));
  return finish(**comm, config);
}

ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int /*ids*/,
                                      ncclUniqueId* id, ncclConfig_t* config) {
  return ncclCommInitRankConfig(comm, ranks, *id, rank, config);
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* child,
                           ncclConfig_t* config) {
  FAIL_NCCL_AS_PLANNED("ncclCommSplit")
  if (state_of(*comm) != ncclSuccess) {
    return ncclInvalidUsage;
  }
  require_to_last(child, "the place of a child is on the stack");
  require_to_last(config->commName, "the name of a child is on the stack");
  *child = nullptr;
  const std::uint64_t serial = ++comm->rank->splits;
  SplitWord& word = comm->rank->board->words(comm->rank->rank).splits[serial % 2];
  word.color = color;
  word.key = key;
  word.serial = serial;
  {
    const std::scoped_lock lock(asking());
    comm->split = ncclComm::Split{color, serial, child, lent(config->commName)};
  }
  // As NCCL says of what goes on in the background (2.28.9).
  return config->blocking == 0 ? ncclSuccess : finish(*comm, config);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = state_of(*comm);
  return ncclSuccess;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  if (!comm->registered.empty()) {
    complain("a communicator ends with memory registered");
  }
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  require_sound(*comm);
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  require_sound(*comm);
  if (comm->split) {
    break_off_splitting(*comm);
  }
  comm->rank->is_aborted = true;
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommRegister(ncclComm_t comm, void* data, std::size_t bytes, void** handle) {
  FAIL_NCCL_AS_PLANNED("ncclCommRegister")
  if (!is_device_only(data, bytes)) {
    return ncclInvalidArgument;
  }
  comm->registered.emplace(data, bytes);
  *handle = data;
  return ncclSuccess;
}

/// What is registered must still be there: NCCL would take it from peers first.
ncclResult_t ncclCommDeregister(ncclComm_t comm, void* handle) {
  const auto found = comm->registered.find(handle);
  if (found == comm->registered.end() || !is_device_only(handle, 1)) {
    return ncclInvalidArgument;
  }
  comm->registered.erase(found);
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group.depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) {
    return ncclInvalidUsage;
  }
  if (--group.depth == 0) {
    for (const Group::Part& part : std::exchange(group.parts, {})) {
      enqueue_part(part);
    }
  }
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  FAIL_NCCL_AS_PLANNED("ncclAllReduce")
  return add(comm, stream, {values(send, count, type), values(recv, count, type)},
             [&](NcclOperation& its) { its.all_reduce(send, recv, count, type, op); });
}

ncclResult_t ncclReduceScatter(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  FAIL_NCCL_AS_PLANNED("ncclReduceScatter")
  return add(comm, stream, {values(send, count * ranks_of(comm), type), values(recv, count, type)},
             [&](NcclOperation& its) { its.reduce_scatter(send, recv, count, type, op); });
}

ncclResult_t ncclReduce(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  FAIL_NCCL_AS_PLANNED("ncclReduce")
  return add(comm, stream,
             of_root({values(send, count, type)}, values(recv, count, type), root, comm),
             [&](NcclOperation& its) { its.reduce(send, recv, count, type, op, root); });
}

ncclResult_t ncclAllGather(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  FAIL_NCCL_AS_PLANNED("ncclAllGather")
  return add(comm, stream, {values(send, count, type), values(recv, count * ranks_of(comm), type)},
             [&](NcclOperation& its) { its.all_gather(send, recv, count * size_of(type)); });
}

ncclResult_t ncclBroadcast(const void* send, void* recv, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  FAIL_NCCL_AS_PLANNED("ncclBroadcast")
  return add(comm, stream,
             of_root({values(recv, count, type)}, values(send, count, type), root, comm),
             [&](NcclOperation& its) { its.broadcast(send, recv, count * size_of(type), root); });
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  FAIL_NCCL_AS_PLANNED("ncclSend")
  return add(comm, stream, {values(data, count, type)},
             [&](NcclOperation& its) { its.send(data, count * size_of(type), peer); });
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  FAIL_NCCL_AS_PLANNED("ncclRecv")
  return add(comm, stream, {values(data, count, type)},
             [&](NcclOperation& its) { its.recv(data, count * size_of(type), peer); });
}
