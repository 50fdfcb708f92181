// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "shared_memory.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/base/unique_handle.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <utility>

namespace fourfold::comm {
namespace {

/// The token's page stands in front of what users see.
constexpr std::size_t head_bytes = 4096;

class ProcessMemory : public SharedMemory {
 public:
  ProcessMemory(FileDescriptor file, void* mapped, std::size_t bytes)
      : file_(std::move(file)), mapped_(static_cast<std::byte*>(mapped)), bytes_(bytes) {}
  ~ProcessMemory() override {
    if (::munmap(mapped_, bytes_) != 0) {
      log::local(log::Level::warning, "shared memory could not be unmapped");
    }
  }
  ProcessMemory(const ProcessMemory&) = delete;
  ProcessMemory& operator=(const ProcessMemory&) = delete;

  std::byte* data() const noexcept override { return mapped_ + head_bytes; }
  std::byte* head() const noexcept { return mapped_; }
  void wake_others() override {}  // they look again and again
  void close_offer() override { file_.reset(); }
  int fd() const noexcept { return file_.get(); }

 private:
  FileDescriptor file_;
  std::byte* mapped_;
  std::size_t bytes_;
};

std::unique_ptr<ProcessMemory> map(FileDescriptor file, std::size_t bytes) {
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  return mapped == MAP_FAILED ? nullptr
                              : std::make_unique<ProcessMemory>(std::move(file), mapped, bytes);
}

}  // namespace

std::unique_ptr<SharedMemory> make_process_memory(std::size_t bytes, MemoryOffer& offer) {
  const std::size_t all_bytes = head_bytes + bytes;
  FileDescriptor file(::memfd_create("fourfold", MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), all_bytes) != 0 ||
      ::getrandom(&offer.token, sizeof(offer.token), 0) != ::ssize_t{sizeof(offer.token)}) {
    return nullptr;
  }
  auto memory = map(std::move(file), all_bytes);
  if (memory) {
    std::memcpy(memory->head(), &offer.token, sizeof(offer.token));
    offer.owner = ::getpid();
    offer.handle = memory->fd();
  }
  return memory;
}

std::unique_ptr<SharedMemory> find_process_memory(std::size_t bytes, const MemoryOffer& offer) {
  const std::size_t all_bytes = head_bytes + bytes;
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.owner, offer.handle);
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat facts {};
  if (!file || ::fstat(file.get(), &facts) != 0 || !S_ISREG(facts.st_mode) ||
      !std::cmp_equal(facts.st_size, all_bytes)) {
    return nullptr;
  }
  auto memory = map(std::move(file), all_bytes);
  std::uint64_t token = 0;
  if (memory) {
    std::memcpy(&token, memory->head(), sizeof(token));
    memory->close_offer();
  }
  return token == offer.token ? std::move(memory) : nullptr;
}

}  // namespace fourfold::comm
